// Says whether a file is a bill of materials by the schema of CycloneDX 1.6:
//
//   node bom.mjs FILE

import { readFileSync } from 'node:fs';
import Ajv from 'ajv';
import formats from 'ajv-formats';

const schema = (name) => JSON.parse(readFileSync(`node_modules/@cyclonedx/cyclonedx-library/res/schema/${name}.SNAPSHOT.schema.json`));
const ajv = new Ajv({ strict: false, allErrors: true });
formats(ajv);
ajv.addFormat('iri-reference', true); // which ajv-formats does not have
ajv.addFormat('idn-email', true);
for (const name of ['spdx', 'jsf-0.82']) ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
const valid = ajv.compile(schema('bom-1.6'));
console.log(valid(JSON.parse(readFileSync(process.argv[2]))) ? 'valid' : JSON.stringify(valid.errors, null, 1));

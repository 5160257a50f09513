// node validate.mjs FILE: ends with an error unless FILE is a valid OpenAPI
// document, references included.

import SwaggerParser from '@apidevtools/swagger-parser';

const api = await SwaggerParser.validate(process.argv[2]);
console.log(`${api.info.title}: ${Object.keys(api.paths).length} paths`);

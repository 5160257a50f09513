// returns: [["name is required","mail is not an e-mail address"],[],["name is required","mail is required"]]
type Check = (v: unknown) => string | undefined;
const required: Check = (v) => (v === undefined || v === "" ? "is required" : undefined);
const email: Check = (v) => (/^[^@\s]+@[^@\s]+\.[a-z]{2,}$/i.test(String(v)) ? undefined : "is not an e-mail address");
const rules: Record<string, Check[]> = { name: [required], mail: [required, email] };
const validate = (o: Record<string, unknown>) => Object.entries(rules).flatMap(([k, cs]) => cs.map((c) => c(o[k])).filter((m): m is string => !!m).slice(0, 1).map((m) => `${k} ${m}`));
return [validate({ name: "", mail: "x" }), validate({ name: "a", mail: "a@b.co" }), validate({})];

// returns: ["2024","03","05",3,"2024-03-05",4,true,null,["year","month","day"]]
const re = /(?<year>\d{4})-(?<month>\d{2})(?:-(?<day>\d{2}))?/;
const m = re.exec("on 2024-03-05.");
const { groups: { year, month, day } } = m;
return [year, month, day, m.index, m[0], m.length, "2024-03".match(re).groups.day === undefined, "x".match(re), Object.keys(m.groups)];

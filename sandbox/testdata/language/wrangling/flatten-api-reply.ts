// returns: {"more":false,"issues":[{"number":1,"by":"ann","labels":"bug, p1"},{"number":2,"by":"ghost"}]}
const reply = { data: { repository: { issues: { edges: [{ node: { number: 1, author: { login: "ann" }, labels: { nodes: [{ name: "bug" }, { name: "p1" }] } } }, { node: { number: 2, author: null, labels: { nodes: [] } } }], pageInfo: { hasNextPage: false, endCursor: "abc" } } } } };
const { edges, pageInfo: { hasNextPage: more } } = reply.data.repository.issues;
return { more, issues: edges.map(({ node: { number, author, labels: { nodes } } }) => ({ number, by: author?.login ?? "ghost", labels: nodes.map((n) => n.name).join(", ") || undefined })) };

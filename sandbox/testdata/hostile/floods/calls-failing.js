// expect: result 900
return (await Promise.allSettled(Array.from({ length: 900 }, () => codemode.echo__denied({})))).filter((r) => r.status === "rejected").length;

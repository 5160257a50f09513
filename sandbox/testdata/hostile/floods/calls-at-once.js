// expect: error LimitError: codemode.echo__say was not sent: the limit of 1000 calls a run is reache
return (await Promise.all(Array.from({ length: 5000 }, (_, i) => codemode.echo__say({ i })))).length;

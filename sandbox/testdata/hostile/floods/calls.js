// expect: error LimitError: codemode.echo__say was not sent: the limit of 1000 calls a run is reache
for (let i = 0; ; i++) await codemode.echo__say({ i });

// expect: result 1 || limit cpu time
Promise.reject({ get message() { for (;;); } });
return 1;

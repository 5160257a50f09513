// What policy forbids throws a ToolCallDeniedError, and that is final: the
// script says so and does not look for another way. Without the catch, the
// command ends with exit code 4.

try {
  return await codemode.shop__send_mail({to: "ann@example.com", subject: "Your lamp", body: "It is on its way."});
} catch (e) {
  if (!(e instanceof ToolCallDeniedError)) throw e;
  return `not sent (${e.reason}); may be tried again: ${e.retryable}`;
}

// $ codemode-bridge eval -c docs/examples/profiles/supervised.json -f docs/examples/scripts/denied.js
// "not sent (denied); may be tried again: false"

/** Used instead of a test if the interface leaves something open. docs/why/contract.md has the assumptions. */
export const notShown = 'not shown'

/**
 * The tests of docs/reference/interface.md: for each sentence below each of its headings, one or more tests. A test is
 * given by its file below test/ and its name.
 *
 * If a sentence is about the client, a test of the daemon shows it. conformance.test.ts compares this table with the
 * interface and with the tests.
 */
export const conformance: Readonly<Record<string, readonly (readonly [sentence: string, ...shownBy: string[]])[]>> = {
  '1. What the service does': [
    [
      'A partner reaches its two halves over HTTPS with JSON bodies:',
      'contract/contract.test.ts: answers are JSON',
      'sandbox/openapi.test.ts: the document has the five endpoints, each with answers and declared path parameters',
    ],
    [
      "**Data submission.** A client submits a record, gets a transaction's id at once, and asks later how it ended.",
      'sandbox/data.test.ts: a submission is accepted, pending while it is processed, and completed with a result',
    ],
    [
      '**Orders.** A client creates an order and reads its status.',
      'sandbox/orders.test.ts: an order is created pending, read with its items, and completed in time',
    ],
    [
      'A test environment has its own address and credentials.',
      'sandbox/command.test.ts: prints its address and the variables to set, and exits with 0 on a stop signal',
      'sandbox/sandboxSettings.test.ts: if only the database is set, everything else has its default',
    ],
    ['What the data mean: not shown.', notShown],
    [
      "Below, `{base_url}` is the service's address and `{auth_url}` the token issuer's.",
      'contract/contract.test.ts: is issued to an OAuth client library',
    ],
  ],
  '2.1 Token': [
    [
      'access_token, string, the Bearer token of every call',
      'sandbox/issuedTokens.test.ts: gives a token to an OAuth client library',
    ],
    ['token_type, string, Bearer', 'contract/contract.test.ts: is issued for client id and secret in a form'],
    [
      'expires_in, integer, lifetime; its unit is not shown',
      'sandbox/statuses.test.ts: lasts at least its whole expires_in (%s)',
    ],
  ],
  '2.2 Data submission': [
    [
      'customerId, string, 10 characters at most',
      'sandbox/data.test.ts: a customerId of 11 characters',
      'sandbox/bounds.test.ts: a customerId may have ten characters that JavaScript counts as twenty',
    ],
    ['data, object', 'sandbox/data.test.ts: data that is a list'],
    [
      'data.field1, string, value1, value2 or value3',
      'contract/contract.test.ts: accepts field1 %s',
      'sandbox/data.test.ts: an unknown field1',
    ],
    ['data.field2, string, its contents are not shown', 'sandbox/data.test.ts: a field2 that is a number'],
  ],
  '2.3 Answer to a submission (200)': [
    ['transactionId, string', 'contract/contract.test.ts: gives every submission its own transactionId'],
    [
      'status, string, `accepted`',
      'contract/contract.test.ts: is answered 200 with a transactionId, accepted and a time in UTC',
    ],
    [
      'timestamp, string, ISO 8601 in UTC',
      'contract/contract.test.ts: is answered 200 with a transactionId, accepted and a time in UTC',
    ],
  ],
  '2.4 Answer for a transaction (200)': [
    ['transactionId, string', 'sandbox/data.test.ts: a transaction that was never submitted is not found'],
    [
      'status, string, pending, completed or failed',
      'contract/contract.test.ts: goes from pending to completed or failed, and stays there',
    ],
    [
      'result, object, once it is processed; its shape is not shown',
      'sandbox/data.test.ts: a submission is accepted, pending while it is processed, and completed with a result',
    ],
    [
      'errorCode, string, if the status is failed (7.2)',
      'sandbox/data.test.ts: a text in the record makes it fail, with a given code',
    ],
  ],
  '2.5 Fields of client and service': [
    ['customerId, customer_id, string, 10 characters at most', 'sandbox/data.test.ts: a customer_id of 11 characters'],
    ['orderDate, order_date, ISO 8601, in UTC', 'sandbox/data.test.ts: an order date that is not UTC'],
    [
      "amount, total_amount, decimal(10,2), euro, without a currency's code",
      'sandbox/data.test.ts: refuses an amount of %s',
    ],
    ['How these relate to the body of 2.2: not shown.', notShown],
  ],
  '2.6 Order': [
    ['customerId, uuid, request', 'sandbox/orders.test.ts: a customerId that is not a uuid'],
    [
      'items, array, request, answer of 4.5; elements are not shown',
      'sandbox/orders.test.ts: amounts in items keep their digits in the answer and in the event',
      'contract/contract.test.ts: are read with their id, status and items',
    ],
    ['orderId, uuid, answers', 'contract/contract.test.ts: are created with 201, an id, a status and a time in UTC'],
    ['status, string, answers (3.2)', 'contract/contract.test.ts: are completed in time'],
    [
      'createdAt, string, answer of 4.4; ISO 8601 in UTC',
      'contract/contract.test.ts: are created with 201, an id, a status and a time in UTC',
    ],
  ],
  '3.1 Of a transaction': [
    [
      'A transaction is `pending` until `completed`, or `failed` with an errorCode.',
      'sandbox/processing.test.ts: a held transaction stays pending past its time and over a restart, and ends when it is released',
      'sandbox/data.test.ts: after a restart, a pending transaction is still pending and ends the same way',
      'sandbox/data.test.ts: the configured share of records fails, with the configured code',
    ],
    [
      'A client asks until then, as often as it chooses.',
      'daemon/track/decideTrack.test.ts: %s %j: poll again',
      'contract/contract.test.ts: goes from pending to completed or failed, and stays there',
    ],
    [
      'Whether an answer of 2.4 may say `accepted`, and the transitions: not shown.',
      'sandbox/data.test.ts: a submission is accepted, pending while it is processed, and completed with a result',
    ],
  ],
  '3.2 Of an order': [
    [
      '`pending` and `completed` are named.',
      'sandbox/processing.test.ts: an order can be held and finished, but not failed',
    ],
    ['All values, and transitions: not shown.', notShown],
  ],
  '4. Endpoints': [
    [
      '4.1, POST {auth_url}/oauth/token, `application/x-www-form-urlencoded`: `grant_type=client_credentials`, `client_id`, `client_secret`, 2.1',
      'sandbox/issuedTokens.test.ts: accepts only a form',
      'sandbox/issuedTokens.test.ts: answers %s as RFC 6749, 5.2 says',
    ],
    [
      '4.2, POST {base_url}/api/v1/data, 2.2, 200 (2.3)',
      'contract/contract.test.ts: is answered 200 with a transactionId, accepted and a time in UTC',
    ],
    [
      '4.3, GET {base_url}/api/v1/data/{transactionId}, 200 (2.4)',
      'contract/contract.test.ts: goes from pending to completed or failed, and stays there',
    ],
    [
      '4.4, POST {base_url}/api/v1/orders, 2.6, 201 (2.6), or 400 if data are invalid',
      'contract/contract.test.ts: are created with 201, an id, a status and a time in UTC',
      'sandbox/orders.test.ts: an order is created pending, read with its items, and completed in time',
      'sandbox/orders.test.ts: refuses %s with 400',
    ],
    [
      '4.5, GET {base_url}/api/v1/orders/{orderId}, 200 (2.6)',
      'contract/contract.test.ts: are read with their id, status and items',
    ],
  ],
  '5. Authentication': [
    [
      'OAuth 2.0, client credentials: id and secret buy the Bearer token (4.1) of every call.',
      'contract/contract.test.ts: is issued to an OAuth client library',
      'contract/contract.test.ts: %s %s with a wrong token gets 401',
    ],
    [
      'It is renewed 5 minutes before `expires_in` ends (recommended).',
      'service/tokens.test.ts: a token is renewed 5 minutes before it expires, in the background',
    ],
    [
      'Id and secret are kept in a store of secrets.',
      'config.test.ts: %s may be read from a file, without its last line break',
    ],
    [
      'If addresses are allow-listed, a 401 to a good token can mean that.',
      'sandbox/data.test.ts: answers 401 to a valid token from an address that is not allow-listed',
    ],
    [
      'For orders, the token is called a JWT.',
      'sandbox/issuedTokens.test.ts: that the test signs itself is accepted, so the next tests’ refusals have their own reasons',
    ],
    ['Scopes, roles and client certificates: not shown.', notShown],
  ],
  '6. Events': [
    [
      '`OrderCreated` is put on a message queue when an order is stored, before the 201 leaves.',
      'sandbox/orders.test.ts: when the 201 arrives, the order and its event are both stored',
    ],
    ['The data half announces nothing.', 'sandbox/orders.test.ts: the event is a CloudEvents envelope'],
    ['The payload, and calls back to clients: not shown.', notShown],
  ],
  '7.1 Statuses': [
    ['400, invalid data, no', 'sandbox/data.test.ts: refuses %s with 400 and the field'],
    [
      '401, not authenticated, once, with a new token',
      'sandbox/issuedTokens.test.ts: %s is refused with 401',
      'daemon/submit/decideSubmit.test.ts: the first: a new token',
    ],
    [
      '429, too many requests, with backoff: 1, 2, 4, 8 s',
      'sandbox/server.test.ts: past the limit requests get 429 with Retry-After, also over a restart, until the window has passed',
      'ledger/budget.test.ts: a pause lasts 1, 2, 4, then 8 seconds, and no longer',
    ],
    [
      '500, the server failed, three times at most',
      'daemon/submit/decideSubmit.test.ts: again after 1, 2 and 4 s, then failed',
    ],
  ],
  '7.2 Codes': [
    [
      'E001, Invalid customer, no such customer; status 400, looks at the data',
      'sandbox/data.test.ts: answers 400 for the customer %s',
      'contract/contract.test.ts: an invalid customer gets 400 with E001',
    ],
    [
      "E002, Duplicate transaction, the transaction's id is taken, takes a new one",
      "sandbox/data.test.ts: or a used transaction id of the client's own is E002, and that id can be polled",
    ],
    [
      'E003, Service unavailable, the system behind it is down, tries again after 5 minutes',
      'sandbox/statuses.test.ts: E003 has Retry-After: 300 s as in the interface, or as set',
    ],
    ["Shape of an error's body, statuses of E002 and E003, codes of orders: not shown.", notShown],
  ],
  '8. Limits': [
    [
      'requests, 100 a minute',
      'sandbox/clientRateLimits.test.ts: the 101st request is refused until the first has left the window',
    ],
    ["client's timeout, 30 s today", 'config.test.ts: the defaults are those that are documented'],
    [
      'targets, over 99 % of requests succeed; answers within 2 s',
      'operations/serviceLevelTargets.test.ts: the message compares a period with both targets',
    ],
    [
      'Answers carry `X-RateLimit-Remaining`.',
      'sandbox/statuses.test.ts: is on every answer of the API and of the token endpoint',
    ],
    ['What the limit counts, the size of bodies, and limits of orders: not shown.', notShown],
  ],
  '9. Versions': [
    ['The path has the version: `/api/v1/`.', 'contract/contract.test.ts: a path with an unknown version is refused'],
    ['How long one is supported: not shown.', notShown],
  ],
}

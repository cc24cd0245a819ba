/** Stands in place of a test if the interface leaves something open: docs/why/contract.md has what is assumed. */
export const notShown = 'not shown'

/**
 * The tests that show what docs/reference/interface.md says: for each of its headings each sentence, with a test's file below
 * test/ and its name there.
 *
 * If a sentence is about the client, a test of the daemon shows it. conformance.test.ts compares this table with the interface
 * and with the tests.
 */
export const conformance: Readonly<Record<string, readonly (readonly [sentence: string, shownBy: string])[]>> = {
  '1. What the service does': [
    ['A partner reaches it over HTTPS with JSON bodies.', 'contract/contract.test.ts: answers are JSON'],
    [
      'It has two halves:',
      'sandbox/openapi.test.ts: it has the five endpoints, each with answers, and every path parameter declared',
    ],
    [
      "**Data submission.** A client hands in a record for a customer, gets a transaction's identifier at once, and asks later what has become of it: a record is accepted first and processed afterwards.",
      'sandbox/data.test.ts: a submission is accepted, pending while it is processed, and completed with a result',
    ],
    [
      '**Orders.** A client creates an order and reads its status.',
      'sandbox/orders.test.ts: an order is created pending, read with its items, and completed in time',
    ],
    [
      'An order that is created is announced on a message queue.',
      'sandbox/orders.test.ts: when the 201 arrives, the order and its event are both there',
    ],
    [
      'There is a test environment with an address and credentials of its own.',
      'sandbox/command.test.ts: prints where it listens and what to set, serves, and ends with 0 when told to',
    ],
    ['What the data mean: not shown.', notShown],
    [
      "`{base_url}` below is the service's address, `{auth_url}` that of the token issuer.",
      'contract/contract.test.ts: comes to an OAuth client library',
    ],
  ],
  '2.1 Answer to a token request': [
    [
      'access_token, string, the Bearer token of every call',
      'sandbox/issuedTokens.test.ts: gives a token to an OAuth client library',
    ],
    ['token_type, string, Bearer', 'contract/contract.test.ts: comes for client id and secret in a form'],
    [
      'expires_in, integer, how long the token lasts; the unit is not shown',
      'sandbox/statuses.test.ts: is all of its expires_in (%s)',
    ],
  ],
  '2.2 Request of a data submission': [
    ['customerId, string, yes, 10 characters at most', 'sandbox/data.test.ts: a customerId of 11 characters'],
    ['data, object, yes, holds field1 and field2', 'sandbox/data.test.ts: data that is a list'],
    ['data.field1, string, yes, value1, value2 or value3', 'contract/contract.test.ts: takes field1 %s'],
    ['data.field2, string, yes, what it may hold is not shown', 'sandbox/data.test.ts: a field2 that is a number'],
  ],
  '2.3 Answer to a data submission (200)': [
    [
      'transactionId, string, names the transaction',
      'contract/contract.test.ts: gives every submission its own transactionId',
    ],
    [
      'status, string, `accepted`',
      'contract/contract.test.ts: is answered 200 with a transactionId, accepted and a time in UTC',
    ],
    [
      'timestamp, string, ISO 8601 in UTC',
      'contract/contract.test.ts: is answered 200 with a transactionId, accepted and a time in UTC',
    ],
  ],
  '2.4 Answer to a question for a transaction (200)': [
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
      'errorCode, string, where the status is failed (7.2)',
      'sandbox/data.test.ts: the record itself can say that it shall fail, and with which code',
    ],
  ],
  "2.5 The client's fields and the service's": [
    [
      'customerId, customer_id, string, yes, 10 characters at most',
      'sandbox/data.test.ts: a customer_id of 11 characters',
    ],
    ['orderDate, order_date, ISO 8601, yes, in UTC', 'sandbox/data.test.ts: an order date that is not UTC'],
    [
      "amount, total_amount, decimal(10,2), yes, euro, without a currency's code",
      'sandbox/data.test.ts: refuses an amount of %s by its digits',
    ],
    ['How these relate to the body of 2.2: not shown. The mapping says how we send them.', notShown],
  ],
  '2.6 Order': [
    ['customerId, uuid as string, request', 'sandbox/orders.test.ts: a customerId that is no uuid'],
    [
      'items, array, request, and answer on reading; the shape of an element is not shown',
      'sandbox/orders.test.ts: amounts in items keep their digits, in the answer and in the event',
    ],
    [
      'orderId, uuid as string, answer',
      'contract/contract.test.ts: are created with 201, an id, a status and a time in UTC',
    ],
    ['status, string, answer (3.2)', 'contract/contract.test.ts: are completed in time'],
    [
      'createdAt, string, answer; ISO 8601 in UTC',
      'contract/contract.test.ts: are created with 201, an id, a status and a time in UTC',
    ],
  ],
  '3.1 Of a transaction': [
    [
      '`pending`: being processed.',
      'sandbox/processing.test.ts: one that is held stays pending past its time and over a restart; let go, it is done then and not before',
    ],
    [
      '`completed`: finished well.',
      'sandbox/data.test.ts: a restart changes neither what is pending nor how it will end',
    ],
    [
      '`failed`: finished badly, with an errorCode.',
      'sandbox/data.test.ts: the share that is to fail fails, with the code that was set',
    ],
    [
      'The answer of 2.3 says `accepted`; whether a question for the transaction may be answered with it, too, is not shown.',
      'sandbox/data.test.ts: a submission is accepted, pending while it is processed, and completed with a result',
    ],
    ['Nor are the transitions.', notShown],
    [
      'A client asks again until the status is completed or failed.',
      'daemon/track/decideTrack.test.ts: %s %j: poll again',
    ],
    [
      "How often is the client's choice.",
      'contract/contract.test.ts: goes from pending to completed or failed, and stays there',
    ],
  ],
  '3.2 Of an order': [
    [
      '`pending` and `completed` are named.',
      'sandbox/processing.test.ts: an order can be held and finished, and never failed',
    ],
    ['All values, and the transitions: not shown.', notShown],
  ],
  '4. Endpoints': [
    [
      '4.1, POST, {auth_url}/oauth/token, client id and secret in the form',
      'sandbox/issuedTokens.test.ts: takes a form and nothing else',
    ],
    [
      '4.2, POST, {base_url}/api/v1/data, Bearer token',
      'contract/contract.test.ts: is answered 200 with a transactionId, accepted and a time in UTC',
    ],
    [
      '4.3, GET, {base_url}/api/v1/data/{transactionId}, Bearer token',
      'contract/contract.test.ts: goes from pending to completed or failed, and stays there',
    ],
    [
      '4.4, POST, {base_url}/api/v1/orders, Bearer token',
      'contract/contract.test.ts: are created with 201, an id, a status and a time in UTC',
    ],
    [
      '4.5, GET, {base_url}/api/v1/orders/{orderId}, Bearer token',
      'contract/contract.test.ts: are read with their id, status and items',
    ],
    [
      '4.1 takes `application/x-www-form-urlencoded` with `grant_type=client_credentials`, `client_id` and `client_secret`, and answers as in 2.1.',
      'sandbox/issuedTokens.test.ts: answers %s as RFC 6749, 5.2 says',
    ],
    [
      '4.2 takes the body of 2.2 and answers 200 as in 2.3.',
      'contract/contract.test.ts: is answered 200 with a transactionId, accepted and a time in UTC',
    ],
    [
      '4.3 takes the id that 4.2 gave and answers 200 as in 2.4.',
      'contract/contract.test.ts: goes from pending to completed or failed, and stays there',
    ],
    [
      '4.4 takes `customerId` and `items`, announces the order (6), and answers 201 with `orderId`, `status` and `createdAt`.',
      'sandbox/orders.test.ts: an order is created pending, read with its items, and completed in time',
    ],
    ['Invalid data are answered with 400.', 'sandbox/orders.test.ts: refuses %s with 400'],
    [
      '4.5 takes the id that 4.4 gave and answers 200 with `orderId`, `status` and `items`.',
      'contract/contract.test.ts: are read with their id, status and items',
    ],
  ],
  '5. Authentication': [
    [
      'OAuth 2.0, client credentials: id and secret buy a Bearer token (4.1).',
      'contract/contract.test.ts: comes to an OAuth client library',
    ],
    [
      'Every call of 4.2 to 4.5 carries it.',
      'contract/contract.test.ts: %s %s without a token, or with a wrong one, is 401',
    ],
    [
      'It is renewed 5 minutes before `expires_in` ends (recommended).',
      'service/tokens.test.ts: it is renewed 5 minutes before its end, in the background',
    ],
    [
      'A 401 is answered with a new token and one repetition, never with the same token again.',
      'daemon/submit/decideSubmit.test.ts: the first: a new token',
    ],
    [
      'Id and secret are kept in a store of secrets.',
      'config.test.ts: %s may come from a file, whose last line break does not count',
    ],
    [
      'The test environment has its own.',
      'sandbox/sandboxSettings.test.ts: with a database alone, everything else has its default',
    ],
    [
      'The service may let in only addresses that its operator has allow-listed: a 401 to a good token can mean that.',
      'sandbox/data.test.ts: answers 401 to a valid token from an address that is not allow-listed',
    ],
    [
      'The order half speaks of the token as a JWT.',
      'sandbox/issuedTokens.test.ts: that we sign ourselves passes, so what the next tests refuse is refused for their reason',
    ],
    ['Scopes, roles and client certificates: not shown.', notShown],
  ],
  '6. Events': [
    [
      '`OrderCreated` is put on a message queue when an order has been stored, before the 201 leaves.',
      'sandbox/orders.test.ts: when the 201 arrives, the order and its event are both there',
    ],
    ['Its payload is not shown.', notShown],
    ['The data half announces nothing: clients ask.', 'sandbox/orders.test.ts: the event is a CloudEvents envelope'],
    ['Calls back to clients: not shown.', notShown],
  ],
  '7.1 Statuses': [
    ['400, the data are invalid, no', 'sandbox/data.test.ts: refuses %s with 400 and the field'],
    ['401, not authenticated, with a new token, once', 'sandbox/issuedTokens.test.ts: %s is refused with 401'],
    [
      '429, too many requests, yes, with exponential backoff',
      'sandbox/server.test.ts: past the limit: 429 with Retry-After; the limit holds over a restart; then there is room again',
    ],
    [
      '500, the server failed, yes, three times at most',
      'daemon/submit/decideSubmit.test.ts: again after 1, 2 and 4 s, then failed',
    ],
  ],
  '7.2 Codes': [
    [
      'E001, Invalid customer, there is no such customer, look at the data',
      'sandbox/data.test.ts: answers 400 for the customer %s',
    ],
    [
      "E002, Duplicate transaction, the transaction's id is used already, take a new id",
      "sandbox/data.test.ts: or a transaction id of the client's own is E002, and can be asked for by that id",
    ],
    [
      'E003, Service unavailable, the system behind it is down, try again after 5 minutes',
      'sandbox/statuses.test.ts: E003 says when to try again: after the five minutes of its client action, or as is set',
    ],
    [
      'An unknown customer is answered with 400 and E001.',
      'contract/contract.test.ts: an invalid customer is 400 with E001',
    ],
    [
      'A failed transaction has its code in `errorCode` (2.4).',
      'sandbox/data.test.ts: the record itself can say that it shall fail, and with which code',
    ],
    ["The shape of an error's body, the statuses of E002 and E003, and the codes of orders: not shown.", notShown],
  ],
  '8. Limits': [
    [
      'requests, 100 a minute',
      'sandbox/rateWindow.test.ts: the 101st request is refused until the first has left the window',
    ],
    ['backoff after 429, 1, 2, 4, 8 s', 'ledger/budget.test.ts: the steps are 1, 2, 4, 8 seconds and stays at 8'],
    ['repetitions after 500, 3 at most', 'daemon/submit/decideSubmit.test.ts: again after 1, 2 and 4 s, then failed'],
    [
      'customerId, 10 characters',
      'sandbox/bounds.test.ts: a customerId has ten characters where JavaScript counts twenty',
    ],
    ['field1, value1, value2, value3', 'sandbox/data.test.ts: another field1'],
    ["the client's timeout, 30 s as it is set now", 'config.test.ts: the defaults are those that users were promised'],
    [
      'Answers carry `X-RateLimit-Remaining`.',
      'sandbox/statuses.test.ts: is on every answer of the API and of the token endpoint',
    ],
    [
      'The service aims at more than 99 % of requests that succeed and at answers within 2 s.',
      'operations/serviceTargets.test.ts: a time is said against both targets',
    ],
    [
      'What the limit counts (client, address, endpoints), the size of bodies, and limits of orders: not shown.',
      notShown,
    ],
  ],
  '9. Versions': [
    ['The version is part of the path: `/api/v1/`.', 'contract/contract.test.ts: another version is not this one'],
    ['How long one is supported: not shown.', notShown],
  ],
}

/**
 * The tests that show the control of each threat in docs/why/security.md: by the threat's number, parts of the names in each
 * file. securityDoc.test.ts compares this table with the page and with the tests.
 */
export const threatTests: Readonly<Record<number, Readonly<Record<string, readonly string[]>>>> = {
  1: {
    'test/service/connect.test.ts': ['one of another host', 'one of an unknown authority'],
  },
  2: {
    'test/config.test.ts': ['Node told to believe any certificate'],
  },
  3: {
    'test/e2e/proxy.test.ts': ['all goes through that proxy only'],
  },
  4: {
    'test/service/client.test.ts': ['a redirect is reported with its place and not followed'],
  },
  5: {
    'test/observe/log.test.ts': ['not on the list is not written'],
    'test/e2e/proxy.test.ts': ['no password is shown'],
  },
  6: {
    'test/service/readJson.test.ts': ['a secret is redacted'],
  },
  7: {
    'test/e2e/credentials.test.ts': ['certificate and secret are renewed'],
  },
  8: {
    'test/embedded/privatePostgres.test.ts': ['none of our secrets'],
    'test/package.test.ts': ['can read the secrets'],
  },
  9: {
    'test/commands/list.test.ts': ['never a payload'],
    'test/console/record.test.ts': ['keeps its values'],
    'test/console/audit.test.ts': ['a search by text is an act'],
  },
  10: {
    'test/commands/erase.test.ts': ['nothing is left of the person'],
  },
  11: {
    'test/service/client.test.ts': ['an endless body', 'a compressed body is refused'],
  },
  12: {
    'test/outbox/claimByLock.test.ts': ['a payload over the limit'],
    'test/outbox/payload.test.ts': ['a payload that cannot be read'],
  },
  13: {
    'test/plainText.test.ts': ['cannot move the cursor'],
    'test/observe/log.test.ts': ['starts no second line'],
    'test/commands/audit.test.ts': ['hostile texts calculate nothing'],
    'test/operations/spreadsheet.test.ts': ['no text begins a cell'],
    'test/console/record.test.ts': ['shown as text whatever it holds'],
  },
  14: {
    'test/commands/describe.test.ts': ['upper case, blanks and quotes'],
    'test/e2e/leastRights.test.ts': ['everything works, nothing is refused'], // namesakes of server functions stand in the way
  },
  15: {
    'test/e2e/leastRights.test.ts': ['changes only the outbox columns that are ours'],
  },
  16: {
    'test/ledger/audit/chain.test.ts': ['the whole chain is written anew'],
  },
  17: {
    'test/console/guard/guard.test.ts': ['with the token of another console'],
    'test/console/guard/login.test.ts': ['does not carry the token'],
  },
  18: {
    'test/console/guard/attempts.test.ts': ['an address has five tries'],
    'test/console/guard/login.test.ts': ['a browser that has signed in before'],
    'test/commands/console.test.ts': ['beyond loopback without knowing who asks'],
  },
  19: {
    'test/observe/httpServerAbuse.test.ts': ['the oldest are ended, and probes are answered'],
  },
  20: {
    'test/mapping/readMapping.test.ts': ['exhaust the stack or the memory'],
  },
  21: {
    'test/licenses.test.ts': ['a licence that does not require its users to publish source'],
  },
  22: {
    'test/package.test.ts': ['lets its process do little'],
  },
  23: {
    'test/daemon/capture/captureRights.test.ts': [
      'does not run with the installer’s rights',
      'can make no trigger with our functions',
      'the statements that are printed',
      'neither run by install.sql nor bound',
    ],
  },
}

import { expect, test } from 'vitest'
import { advice } from '../../src/console/html/advice.ts'

test.each([
  ['5 wait: outboxd list shows them.', '5 wait: <a href="/records">Records</a> shows them.'],
  ['outboxd list --by-cause shows why', '<a href="/records?by-cause=on">Records</a> shows why'],
  ['outboxd list --state queued shows it.', '<a href="/records?state=queued">Records</a> shows it.'],
  ['outboxd list --state failed,rejected', '<a href="/records?state=failed,rejected">Records</a>'],
  ['outboxd resume --all ends it', '<a href="/resume?all=on">Resume</a> ends it'],
  ['outboxd resume --believe-refusals', '<a href="/resume?believeRefusals=on">Resume</a>'],
  ['outboxd audit says who', '<a href="/audit">Audit</a> says who'],
  ['outboxd status shows whether one does', '<a href="/">Now</a> shows whether one does'],
  ['outboxd show outbox:4711.', '<a href="/records/outbox%3A4711">outbox:4711</a>.'],
  ['outboxd list --limit 5', '<code>outboxd list --limit</code> 5'],
  ['outboxd prune --dry-run says', '<code>outboxd prune --dry-run</code> says'],
  ['a <b> and \u202e', 'a &lt;b&gt; and \\u202e'],
])('%s', (text, shown) => {
  expect(advice(text).toString()).toBe(shown)
})

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
  expect(advice(text, []).toString()).toBe(shown)
})

test.each([
  'outboxd resume --all',
  'OUTBOXD   resume --all',
  'say\noutboxd resume\n--all',
  'x outboxd resume --all for 5.00',
])('a command that stands in what the ERP or the service wrote (%j) becomes no link, and ours beside it does', (theirs) => {
  const data = { problems: [{ detail: { values: new Map([['amount', theirs]]) } }] }
  const said = advice(`refused: outboxd resume --all; outboxd check says why, outboxd status how`, data).toString()
  expect(said).toBe('refused: outboxd resume --all; <code>outboxd check</code> says why, <a href="/">Now</a> how')
})

import { expect, test } from 'vitest'
import { setup } from '../e2e/faults/harness.ts'
import { openForFile } from '../support/openForFile.ts'

const harness = openForFile(() => setup())

test('a record whose outcome the ledger refused while the daemon stopped is not left as sending', async () => {
  await harness.pool.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise 'not accepted'; end $$;
    create trigger refuse before update on outboxd.submission for each row
      when (new.state = 'accepted') execute function refuse()`)
  const daemon = await harness.start()
  await harness.fault({ kind: 'delay', delayMs: 1_500, endpoint: 'submit' })
  await harness.insert('refused-')
  await expect.poll(async () => (await harness.outcome('refused-')).state).toBe('sending')
  await daemon.stop()
  const { state, posts } = await harness.outcome('refused-')
  expect({ state, posts }).toEqual({ state: 'uncertain', posts: [200] })
})

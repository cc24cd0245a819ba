import { setTimeout as after } from 'node:timers/promises'
import pg from 'pg'
import type { SeededRandom } from './seededRandom.ts'

/** What an ERP does to its outbox table while daemons write to it. */
export interface ErpFaults {
  /** For a while, refuses, ignores or delays writes to some rows, or locks rows. Resolves when that is over. */
  strike(random: SeededRandom): Promise<void>
  /** Ends the current fault. */
  clear(): Promise<void>
}

const forMs = [500, 4_000] as const
const lockedMost = 40

/**
 * Installs a trigger that refuses writes to a seventh of the rows while `erp_mood` says so, ignores those to another
 * seventh, or takes 0.3 s for each row: what a validation, an archive or a slow function of the ERP does.
 */
export async function installErpFaults(outbox: pg.Pool, url: string): Promise<ErpFaults> {
  await outbox.query(`
    create table erp_mood (mood text not null);
    create function erp_interferes() returns trigger language plpgsql as $$
    begin
      if old.id % 7 = 3 and exists (select from erp_mood where mood = 'refuses') then
        raise exception 'the ERP refuses this row' using errcode = 'P0001';
      elsif old.id % 7 = 4 and exists (select from erp_mood where mood = 'ignores') then
        return null;
      elsif exists (select from erp_mood where mood = 'slow') then
        perform pg_sleep(0.3);
      end if;
      return new;
    end $$;
    create trigger erp_interferes before update on outbox for each row execute function erp_interferes()`)

  return {
    async strike(random) {
      const ms = random.whole(...forMs)
      const what = random.pick(['refuses', 'ignores', 'slow', 'lock'] as const)
      if (what === 'lock') return lockSome(url, ms)
      await outbox.query('insert into erp_mood values ($1)', [what]).catch(() => {})
      await after(ms)
      await outbox.query('delete from erp_mood where mood = $1', [what]).catch(() => {})
    },
    async clear() {
      await outbox.query('delete from erp_mood')
    },
  }
}

/** Like an open form: a session locks the newest rows until its connection ends. */
async function lockSome(url: string, ms: number): Promise<void> {
  const client = new pg.Client(url)
  client.on('error', () => {}) // the server is restarted now and then
  try {
    await client.connect()
    await client.query('begin')
    await client.query('select from outbox order by id desc limit $1 for update', [lockedMost])
    await after(ms)
  } catch {
    // The database is away, or a daemon was faster, so nothing is locked.
  } finally {
    await client.end().catch(() => {})
  }
}

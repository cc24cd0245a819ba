import type pg from 'pg'

/** The schema's version, in sandbox.steps. */
const newest = 8

const schemaSql = `
  create table sandbox.state (
    name  text primary key,
    value jsonb not null
  );

  create table sandbox.ledger (
    sequence        bigint generated always as identity primary key,
    arrived_at      timestamptz not null,
    endpoint        text not null check (endpoint in ('token', 'submit', 'status', 'order', 'order_status', 'other')),
    method          text not null,
    path            text not null,
    client          text,
    address         text not null,
    idempotency_key text,
    body            text,        -- as it arrived, its numbers never reparsed; the client secret is left out
    status          integer,     -- null if the connection was dropped without an answer
    dropped         boolean not null,
    counted         boolean not null, -- against the rate limit
    fault_id        bigint,
    transaction_id  text,
    order_id        uuid,
    check (dropped = (status is null)),
    check (num_nonnulls(transaction_id, order_id) <= 1)
  );
  create index ledger_arrived on sandbox.ledger (arrived_at);
  create index ledger_applied_key on sandbox.ledger (idempotency_key)
    where idempotency_key is not null and (transaction_id is not null or order_id is not null);

  -- The end is decided on arrival. A transaction is done when the clock passes done_at, even after a restart.
  create table sandbox.transactions (
    client      text not null,
    id          text,
    customer_id text not null,
    accepted_at timestamptz not null,
    done_at     timestamptz not null,
    outcome     text not null check (outcome in ('completed', 'failed')),
    error_code  text,
    position    bigint not null default 0, -- in the client's random stream; also the order if the clock stands still
    held        boolean not null default false, -- stays pending until it is let go or finished, even after done_at
    statuses    jsonb,           -- what polls find if a script decides; held is then true
    told        integer not null default 0, -- how many polls there were
    primary key (id, client),
    check ((outcome = 'failed') = (error_code is not null))
  );
  create index transactions_accepted on sandbox.transactions (accepted_at, position, id, client);

  create table sandbox.orders (
    client      text not null,
    id          uuid,
    customer_id uuid not null,
    items       json not null,   -- json, not jsonb: keeps the digits as they came
    created_at  timestamptz not null,
    done_at     timestamptz not null,
    position    bigint not null default 0,
    held        boolean not null default false,
    statuses    jsonb,
    told        integer not null default 0,
    event_id    uuid,
    primary key (id, client)
  );
  create index orders_created on sandbox.orders (created_at, position, id, client);
  create index orders_event on sandbox.orders (event_id);

  create table sandbox.faults (
    id   bigint generated always as identity primary key,
    spec jsonb not null,
    hits bigint not null default 0 -- how many requests it was applied to, because the table ledger can be emptied
  );

  -- How often a record with a script was sent.
  create table sandbox.scripted_answers (
    record   text primary key,   -- a hash of the script, the client and the record
    answered integer not null
  );
`

/** @param session holds the serving lock @throws Error if another version made the schema */
export async function prepareSchema(session: pg.ClientBase): Promise<void> {
  await session.query(`
    create schema if not exists sandbox;
    create table if not exists sandbox.steps (number integer primary key, applied_at timestamptz not null default now())
  `)
  const { rows } = await session.query<{ done: number }>('select coalesce(max(number), 0) as done from sandbox.steps')
  const done = rows[0]?.done ?? 0
  if (done === newest) return
  if (done !== 0)
    throw new Error(
      `the schema sandbox was made by ${done > newest ? 'a newer' : 'an older'} outboxd. Drop it (\`drop schema sandbox, sandbox_queue cascade\`), or use another database`,
    )
  await session.query(`begin; ${schemaSql} insert into sandbox.steps (number) values (${newest}); commit`)
}

type StateName = 'signing_key' | 'revocations' | 'client_settings' | 'clock' | 'scenario'

export async function readOrCreateState<T>(pool: pg.Pool, name: StateName, initialValue: T): Promise<T> {
  await pool.query('insert into sandbox.state (name, value) values ($1, $2) on conflict (name) do nothing', [
    name,
    JSON.stringify(initialValue),
  ])
  const { rows } = await pool.query<{ value: T }>('select value from sandbox.state where name = $1', [name])
  return rows[0]?.value ?? initialValue
}

export async function writeState(pool: pg.Pool, name: StateName, value: unknown): Promise<void> {
  await pool.query(
    'insert into sandbox.state (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    [name, JSON.stringify(value)],
  )
}

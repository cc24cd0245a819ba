import type pg from 'pg'

/** Every step was once the newest; append, never edit. */
const steps = [
  `
  create table sandbox.state (
    name  text primary key,      -- signing_key, token_generation, settings
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
    status          integer,     -- null where the connection was dropped without an answer
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

  -- Decided on arrival: whether it is done yet is a comparison of done_at with the clock, restart or not.
  create table sandbox.transactions (
    id          text primary key,
    customer_id text not null,
    accepted_at timestamptz not null,
    done_at     timestamptz not null,
    outcome     text not null check (outcome in ('completed', 'failed')),
    error_code  text,
    check ((outcome = 'failed') = (error_code is not null))
  );

  create table sandbox.orders (
    id          uuid primary key,
    customer_id uuid not null,
    items       json not null,   -- json, not jsonb: keeps the digits as they came
    created_at  timestamptz not null,
    done_at     timestamptz not null
  );

  create table sandbox.faults (
    id   bigint generated always as identity primary key,
    spec jsonb not null
  );
  `,
  `
  -- held: pending until it is let go or finished at /_sandbox/, whatever done_at says.
  alter table sandbox.transactions add column held boolean not null default false;
  alter table sandbox.orders add column held boolean not null default false;
  `,
  `
  -- In the stream of draws. What was there before has come in the order in which it was accepted.
  alter table sandbox.transactions add column position bigint;
  alter table sandbox.orders add column position bigint;
  with accepted as (
    select id, accepted_at as at from sandbox.transactions
    union all select id::text, created_at from sandbox.orders
  ), numbered as (
    select id, row_number() over (order by at, id) - 1 as position from accepted
  ), transactions as (
    update sandbox.transactions t set position = n.position from numbered n where n.id = t.id
  )
  update sandbox.orders o set position = n.position from numbered n where n.id = o.id::text;
  create index transactions_position on sandbox.transactions (position);
  create index orders_position on sandbox.orders (position);
  `,
  `
  -- The lists of /_sandbox/ are read batch by batch, each from where the one before has ended.
  create index transactions_accepted on sandbox.transactions (accepted_at, id);
  create index orders_created on sandbox.orders (created_at, id);
  `,
  `
  -- What polls find, one after the other, of what goes by a script; told: how many there were. It is held until the script ends it.
  alter table sandbox.transactions add column statuses jsonb, add column told integer not null default 0;
  alter table sandbox.orders add column statuses jsonb, add column told integer not null default 0;

  -- How often a record was answered by its script, that is: was sent.
  create table sandbox.scripted_answers (
    record   text primary key,   -- a hash of the script, the client and the record
    answered integer not null
  );
  `,
  `
  -- Whose it is; '' is of before, and becomes the first client's at the next start. An id is its client's own.
  alter table sandbox.transactions add column client text not null default '';
  alter table sandbox.transactions drop constraint transactions_pkey, add primary key (id, client);
  alter table sandbox.orders add column client text not null default '', add column event_id uuid;
  alter table sandbox.orders drop constraint orders_pkey, add primary key (id, client);
  do $$ begin
    if to_regclass('sandbox_queue.job') is not null then
      update sandbox.orders o set event_id = j.id
      from sandbox_queue.job j where j.name = 'OrderCreated' and j.data -> 'data' ->> 'orderId' = o.id::text;
    end if;
  end $$;
  create index orders_event on sandbox.orders (event_id);
  `,
  `
  -- Where the clock stands, the position tells what came first. A row that was written by hand has 0.
  update sandbox.transactions set position = 0 where position is null;
  update sandbox.orders set position = 0 where position is null;
  alter table sandbox.transactions alter column position set default 0, alter column position set not null;
  alter table sandbox.orders alter column position set default 0, alter column position set not null;
  drop index sandbox.transactions_accepted, sandbox.orders_created, sandbox.transactions_position, sandbox.orders_position;
  create index transactions_accepted on sandbox.transactions (accepted_at, position, id, client);
  create index orders_created on sandbox.orders (created_at, position, id, client);
  `,
  `
  -- Requests that a fault was applied to: counted here, so that the ledger can be emptied.
  alter table sandbox.faults add column hits bigint not null default 0;
  update sandbox.faults f set hits = (select count(*) from sandbox.ledger l where l.fault_id = f.id);
  `,
]

/**
 * Brings the schema `sandbox` up to date.
 *
 * @param session holds the lock, so that of two that start at once one does it
 */
export async function prepareSchema(session: pg.ClientBase): Promise<void> {
  await session.query(`
    create schema if not exists sandbox;
    create table if not exists sandbox.steps (number integer primary key, applied_at timestamptz not null default now())
  `)
  const { rows } = await session.query<{ done: number }>('select count(*)::integer as done from sandbox.steps')
  const done = rows[0]?.done ?? 0
  if (done > steps.length)
    throw new Error(
      `the database is of a newer outboxd (${done} steps of its schema, and this one knows ${steps.length}): take that one, or another database`,
    )
  for (const [index, step] of steps.entries()) {
    if (index < done) continue
    await session.query(`begin; ${step}; insert into sandbox.steps (number) values (${index + 1}); commit`)
  }
}

/** What outlives a restart besides the ledger and its effects; one row each. */
export type StateName =
  | 'signing_key'
  | 'token_generation'
  | 'token_generations'
  | 'settings'
  | 'client_settings'
  | 'clock'
  | 'scenario'

/** Reads a value, or stores `first` and reads that; of two that start at once, both read the same. */
export async function readOrCreateState<T>(pool: pg.Pool, name: StateName, first: T): Promise<T> {
  await pool.query('insert into sandbox.state (name, value) values ($1, $2) on conflict (name) do nothing', [
    name,
    JSON.stringify(first),
  ])
  const { rows } = await pool.query<{ value: T }>('select value from sandbox.state where name = $1', [name])
  return rows[0]?.value ?? first
}

export async function writeState(pool: pg.Pool, name: StateName, value: unknown): Promise<void> {
  await pool.query(
    'insert into sandbox.state (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    [name, JSON.stringify(value)],
  )
}

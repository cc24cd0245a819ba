/** The schema of the first sandbox that was released, as it made it. */
export const firstSchema = `
  create schema sandbox;
  create table sandbox.steps (number integer primary key, applied_at timestamptz not null default now());
  insert into sandbox.steps (number) values (1);

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
  
`

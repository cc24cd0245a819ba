-- What brings the sandbox of 0.1.0 (service.sql) to the schema of 0.2.0, which this version begins with.

  -- held: pending until it is let go or finished at /_sandbox/, whatever done_at says.
  alter table sandbox.transactions add column held boolean not null default false;
  alter table sandbox.orders add column held boolean not null default false;
  insert into sandbox.steps (number) values (2);

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
  insert into sandbox.steps (number) values (3);

  -- The lists of /_sandbox/ are read batch by batch, each from where the one before has ended.
  create index transactions_accepted on sandbox.transactions (accepted_at, id);
  create index orders_created on sandbox.orders (created_at, id);
  insert into sandbox.steps (number) values (4);

  -- What polls find, one after the other, of what goes by a script; told: how many there were. It is held until the script ends it.
  alter table sandbox.transactions add column statuses jsonb, add column told integer not null default 0;
  alter table sandbox.orders add column statuses jsonb, add column told integer not null default 0;

  -- How often a record was answered by its script, that is: was sent.
  create table sandbox.scripted_answers (
    record   text primary key,   -- a hash of the script, the client and the record
    answered integer not null
  );
  insert into sandbox.steps (number) values (5);

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
  insert into sandbox.steps (number) values (6);

  -- Where the clock stands, the position tells what came first. A row that was written by hand has 0.
  update sandbox.transactions set position = 0 where position is null;
  update sandbox.orders set position = 0 where position is null;
  alter table sandbox.transactions alter column position set default 0, alter column position set not null;
  alter table sandbox.orders alter column position set default 0, alter column position set not null;
  drop index sandbox.transactions_accepted, sandbox.orders_created, sandbox.transactions_position, sandbox.orders_position;
  create index transactions_accepted on sandbox.transactions (accepted_at, position, id, client);
  create index orders_created on sandbox.orders (created_at, position, id, client);
  insert into sandbox.steps (number) values (7);

  update sandbox.transactions set client = 'sandbox';
  update sandbox.orders set client = 'sandbox';

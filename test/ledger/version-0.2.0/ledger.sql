SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA outboxd;
CREATE SCHEMA pgboss;
CREATE TYPE pgboss.job_state AS ENUM (
    'created',
    'retry',
    'active',
    'completed',
    'cancelled',
    'failed'
);
CREATE FUNCTION outboxd.digest_of(a text, b text) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    RETURN sha256(convert_to(((((octet_length(COALESCE(a, ''::text)))::text || ':'::text) || COALESCE(a, ''::text)) || COALESCE(b, ''::text)), 'UTF8'::name));
CREATE FUNCTION outboxd.contents_digest(detail jsonb) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    RETURN outboxd.digest_of((detail #>> '{former,body}'::text[]), (detail #>> '{former,payload}'::text[]));
CREATE FUNCTION outboxd.count_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  insert into outboxd.state_delta select state, -count(*) from old_rows group by state;
  return null;
end $$;
CREATE FUNCTION outboxd.count_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  insert into outboxd.state_delta select state, count(*) from new_rows group by state;
  return null;
end $$;
CREATE FUNCTION outboxd.count_updated() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  insert into outboxd.state_delta
  select state, sum(step) from (
    select state, 1 as step from new_rows union all select state, -1 from old_rows
  ) steps group by state having sum(step) <> 0;
  return null;
end $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE outboxd.outbox (
    id smallint NOT NULL,
    database_name text,
    table_name text,
    id_column text,
    start_id text,
    start_at timestamp with time zone,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    said_by text,
    compared_at timestamp with time zone,
    is_current boolean DEFAULT true NOT NULL,
    rows_edited boolean DEFAULT false NOT NULL,
    readings integer DEFAULT 0 NOT NULL,
    CONSTRAINT outbox_check CHECK ((((database_name IS NULL) = (table_name IS NULL)) AND ((table_name IS NULL) = (id_column IS NULL))))
);
CREATE FUNCTION outboxd.current_outbox() RETURNS smallint
    LANGUAGE sql STABLE
    RETURN (SELECT outbox.id FROM outboxd.outbox WHERE outbox.is_current);
CREATE FUNCTION outboxd.without_contents(detail jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    RETURN ((detail #- '{former,body}'::text[]) #- '{former,payload}'::text[]);
CREATE FUNCTION outboxd.detail_digest(cause text, detail jsonb) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    RETURN outboxd.digest_of(cause, (outboxd.without_contents(detail))::text);
CREATE FUNCTION outboxd.history_now(OUT system_id text, OUT timeline bigint, OUT database_oid bigint, OUT ledger_oid bigint, OUT safe_lsn pg_lsn, OUT has_target boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
begin
  select d.oid into database_oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database();
  ledger_oid := pg_catalog.to_regclass('outboxd.submission')::oid;
  if pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'execute') then
    select c.system_identifier::text into system_id from pg_catalog.pg_control_system() c;
  end if;
  if not pg_catalog.pg_is_in_recovery()
    and pg_catalog.has_function_privilege('pg_catalog.pg_current_wal_insert_lsn()', 'execute')
    and pg_catalog.has_function_privilege('pg_catalog.pg_current_wal_flush_lsn()', 'execute')
    and pg_catalog.has_function_privilege('pg_catalog.pg_walfile_name(pg_catalog.pg_lsn)', 'execute') then
    -- The checkpoint's timeline lags behind a promotion that need not wait for one.
    timeline := ('x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8))::bit(32)::bigint;
    safe_lsn := pg_catalog.pg_current_wal_flush_lsn();
  end if;
  -- Restored to a point in time, and not to the end.
  has_target := pg_catalog.concat(pg_catalog.current_setting('recovery_target', true),
    pg_catalog.current_setting('recovery_target_lsn', true), pg_catalog.current_setting('recovery_target_name', true),
    pg_catalog.current_setting('recovery_target_time', true), pg_catalog.current_setting('recovery_target_xid', true)) <> '';
end $$;
CREATE FUNCTION outboxd.kept_cause(who text, cause text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (who ~~ 'operator%'::text) THEN split_part(cause, ':'::text, 1) ELSE 'erased'::text END;
CREATE FUNCTION outboxd.note_set_at() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  new.set_at := clock_timestamp();
  return new;
end $$;
CREATE FUNCTION outboxd.note_writer() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  new.written_by := pg_catalog.pg_current_xact_id();
  return new;
end $$;
CREATE FUNCTION outboxd.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if tg_op = 'DELETE' and not exists (select from outboxd.submission where id = old.submission_id) then
    if old.id > coalesce((select last_event from outboxd.chain_block order by number desc limit 1), 0) then
      raise exception 'event % is not deleted: it is not in the chain yet', old.id;
    end if;
    return old;
  end if;
  if tg_op = 'UPDATE' and exists (select from outboxd.submission where id = old.submission_id and erased_at is not null) then
    -- Erased.
    new.contents_digest := coalesce(old.contents_digest, outboxd.contents_digest(old.detail));
    new.detail_digest := coalesce(old.detail_digest, outboxd.detail_digest(old.cause, old.detail));
    old.contents_digest := new.contents_digest;
    old.detail_digest := new.detail_digest;
    old.cause := outboxd.kept_cause(old.who, old.cause);
    old.detail := null;
    if new is not distinct from old then
      return new;
    end if;
  elsif tg_op = 'UPDATE' then
    -- Emptied: what a replay has noted of contents goes.
    new.contents_digest := coalesce(old.contents_digest, outboxd.contents_digest(old.detail));
    old.contents_digest := new.contents_digest;
    old.detail := outboxd.without_contents(old.detail);
    if new is not distinct from old
      and exists (select from outboxd.submission where id = old.submission_id and emptied_at is not null) then
      return new;
    end if;
  end if;
  raise exception 'the event log is append-only';
end $$;
CREATE FUNCTION outboxd.refuse_change_of_act() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception 'the log of operators'' acts is append-only';
end $$;
CREATE FUNCTION outboxd.refuse_change_of_chain() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if tg_op = 'UPDATE' then
    old.look_at := new.look_at;
    if new.event_ids is null and new.submission_ids is null and new.leaves is null and new.acts = 0
      and not exists (select from outboxd.submission_event where id = any(old.event_ids)) then
      old.event_ids := null;
      old.submission_ids := null;
      old.leaves := null;
    end if;
    if new is not distinct from old then
      return new;
    end if;
  end if;
  raise exception 'the chain is append-only';
end $$;
CREATE FUNCTION outboxd.refuse_delete() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if old.state in ('completed', 'discarded') and not old.report_due then
    return old;
  end if;
  raise exception 'submission % is % and is not deleted: only what is completed or discarded, and told to its row, goes',
    old.id, old.state;
end $$;
CREATE FUNCTION pgboss.create_queue(queue_name text, options jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $_$
    DECLARE
      tablename varchar := CASE WHEN options->>'partition' = 'true'
                            THEN 'j' || encode(sha224(queue_name::bytea), 'hex')
                            ELSE 'job_common'
                            END;
      queue_created_on timestamptz;
    BEGIN
      WITH q as (
        INSERT INTO pgboss.queue (
          name,
          policy,
          retry_limit,
          retry_delay,
          retry_backoff,
          retry_delay_max,
          expire_seconds,
          retention_seconds,
          deletion_seconds,
          warning_queued,
          dead_letter,
          partition,
          table_name,
          heartbeat_seconds,
          notify,
          created_on,
          updated_on
        )
        VALUES (
          queue_name,
          options->>'policy',
          COALESCE((options->>'retryLimit')::int, 2),
          COALESCE((options->>'retryDelay')::int, 0),
          COALESCE((options->>'retryBackoff')::bool, false),
          (options->>'retryDelayMax')::int,
          COALESCE((options->>'expireInSeconds')::int, 900),
          COALESCE((options->>'retentionSeconds')::int, 1209600),
          COALESCE((options->>'deleteAfterSeconds')::int, 604800),
          COALESCE((options->>'warningQueueSize')::int, 0),
          options->>'deadLetter',
          COALESCE((options->>'partition')::bool, false),
          tablename,
          (options->>'heartbeatSeconds')::int,
          COALESCE((options->>'notify')::bool, false),
          pgboss.job_now(),
          pgboss.job_now()
        )
        ON CONFLICT DO NOTHING
        RETURNING created_on
      )
      SELECT created_on into queue_created_on from q;
      IF queue_created_on IS NULL OR options->>'partition' IS DISTINCT FROM 'true' THEN
        RETURN;
      END IF;
      EXECUTE format('CREATE TABLE pgboss.%I (LIKE pgboss.job INCLUDING DEFAULTS)', tablename);
      EXECUTE pgboss.job_table_format($cmd$ALTER TABLE pgboss.job ADD PRIMARY KEY (name, id)$cmd$, tablename);
      EXECUTE pgboss.job_table_format($cmd$ALTER TABLE pgboss.job ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES pgboss.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED$cmd$, tablename);
      EXECUTE pgboss.job_table_format($cmd$ALTER TABLE pgboss.job ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES pgboss.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED$cmd$, tablename);
      EXECUTE pgboss.job_table_format($cmd$CREATE INDEX job_i11 ON pgboss.job (name, priority DESC, created_on, start_after) WHERE state < 'active' AND NOT blocked$cmd$, tablename);
      EXECUTE pgboss.job_table_format($cmd$CREATE UNIQUE INDEX job_i4 ON pgboss.job (name, singleton_on, COALESCE(singleton_key, '')) WHERE state <> 'cancelled' AND singleton_on IS NOT NULL$cmd$, tablename);
      EXECUTE pgboss.job_table_format($cmd$CREATE INDEX job_i7 ON pgboss.job (name, group_id) WHERE state = 'active' AND group_id IS NOT NULL$cmd$, tablename);
      EXECUTE pgboss.job_table_format($cmd$CREATE INDEX job_i9 ON pgboss.job (name, id) WHERE blocking AND state = 'completed'$cmd$, tablename);
      EXECUTE pgboss.job_table_format($cmd$CREATE INDEX job_i12 ON pgboss.job (source_root_id) WHERE source_root_id IS NOT NULL$cmd$, tablename);
      IF options->>'policy' = 'short' THEN
        EXECUTE pgboss.job_table_format($cmd$CREATE UNIQUE INDEX job_i1 ON pgboss.job (name, COALESCE(singleton_key, '')) WHERE state = 'created' AND policy = 'short'$cmd$, tablename);
      ELSIF options->>'policy' = 'singleton' THEN
        EXECUTE pgboss.job_table_format($cmd$CREATE UNIQUE INDEX job_i2 ON pgboss.job (name, COALESCE(singleton_key, '')) WHERE state = 'active' AND policy = 'singleton'$cmd$, tablename);
      ELSIF options->>'policy' = 'stately' THEN
        EXECUTE pgboss.job_table_format($cmd$CREATE UNIQUE INDEX job_i3 ON pgboss.job (name, state, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'stately'$cmd$, tablename);
      ELSIF options->>'policy' = 'exclusive' THEN
        EXECUTE pgboss.job_table_format($cmd$CREATE UNIQUE INDEX job_i6 ON pgboss.job (name, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'exclusive'$cmd$, tablename);
      ELSIF options->>'policy' = 'key_strict_fifo' THEN
        EXECUTE pgboss.job_table_format($cmd$CREATE UNIQUE INDEX job_i8 ON pgboss.job (name, singleton_key) WHERE state IN ('active', 'retry', 'failed') AND policy = 'key_strict_fifo'$cmd$, tablename);
        EXECUTE pgboss.job_table_format($cmd$CREATE INDEX job_i10 ON pgboss.job (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE state < 'active' AND NOT blocked AND policy = 'key_strict_fifo'$cmd$, tablename);
        EXECUTE pgboss.job_table_format($cmd$ALTER TABLE pgboss.job ADD CONSTRAINT job_key_strict_fifo_singleton_key_check CHECK (NOT (policy = 'key_strict_fifo' AND singleton_key IS NULL))$cmd$, tablename);
      END IF;
      EXECUTE format('ALTER TABLE pgboss.%I ADD CONSTRAINT cjc CHECK (name=%L)', tablename, queue_name);
      EXECUTE format('ALTER TABLE pgboss.job ATTACH PARTITION pgboss.%I FOR VALUES IN (%L)', tablename, queue_name);
    END;
    $_$;
CREATE FUNCTION pgboss.delete_queue(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    DECLARE
      v_table varchar;
      v_partition bool;
    BEGIN
      
      SELECT table_name, partition
      FROM pgboss.queue
      WHERE name = queue_name
      INTO v_table, v_partition;
      IF v_partition THEN
        EXECUTE format('DROP TABLE IF EXISTS pgboss.%I', v_table);
      ELSE
        EXECUTE format('DELETE FROM pgboss.%I WHERE name = %L', v_table, queue_name);
      END IF;
    
      DELETE FROM pgboss.queue WHERE name = queue_name;
    END;
    $$;
CREATE FUNCTION pgboss.job_now() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
      SELECT pg_catalog.now();
    $$;
CREATE FUNCTION pgboss.job_table_format(command text, table_name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $_$
      SELECT format(
        regexp_replace(
          regexp_replace(command, '\.job\y', '.%1$I', 'g'),
          '\yjob_i(\d+)', '%1$s_i\1', 'g'
        ),
        table_name
      );
    $_$;
CREATE FUNCTION pgboss.job_table_run(command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    DECLARE
      tbl RECORD;
    BEGIN
      IF queue_name IS NOT NULL THEN
        SELECT table_name INTO tbl_name FROM pgboss.queue WHERE name = queue_name;
      END IF;
      IF tbl_name IS NOT NULL THEN
        EXECUTE pgboss.job_table_format(command, tbl_name);
        RETURN;
      END IF;
      EXECUTE pgboss.job_table_format(command, 'job_common');
      FOR tbl IN SELECT table_name FROM pgboss.queue WHERE partition = true
      LOOP
        EXECUTE pgboss.job_table_format(command, tbl.table_name);
      END LOOP;
    END;
    $$;
CREATE FUNCTION pgboss.job_table_run_async(command_name text, version integer, command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    BEGIN
      IF queue_name IS NOT NULL THEN
        SELECT table_name INTO tbl_name FROM pgboss.queue WHERE name = queue_name;
      END IF;
      IF tbl_name IS NOT NULL THEN
        INSERT INTO pgboss.bam (name, version, status, queue, table_name, command)
        VALUES (
          command_name,
          version,
          'pending',
          queue_name,
          tbl_name,
          pgboss.job_table_format(command, tbl_name)
        );
        RETURN;
      END IF;
      INSERT INTO pgboss.bam (name, version, status, queue, table_name, command)
      SELECT
        command_name,
        version,
        'pending',
        NULL,
        'job_common',
        pgboss.job_table_format(command, 'job_common')
      UNION ALL
      SELECT
        command_name,
        version,
        'pending',
        queue.name,
        queue.table_name,
        pgboss.job_table_format(command, queue.table_name)
      FROM pgboss.queue
      WHERE partition = true;
    END;
    $$;
CREATE FUNCTION public.outboxd_wake() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if not pg_catalog.pg_try_advisory_xact_lock_shared(1869968482, tg_relid::int) then
    perform pg_catalog.pg_notify('outboxd_outbox', '');
  end if;
  return null;
end $$;
CREATE TABLE outboxd.believed_refusal (
    fingerprint text NOT NULL,
    said text NOT NULL,
    until timestamp with time zone NOT NULL
);
CREATE TABLE outboxd.budget (
    id boolean DEFAULT true NOT NULL,
    requests integer NOT NULL,
    window_ms bigint NOT NULL,
    CONSTRAINT budget_id_check CHECK (id),
    CONSTRAINT budget_requests_check CHECK ((requests > 0)),
    CONSTRAINT budget_window_ms_check CHECK ((window_ms > 0))
);
CREATE TABLE outboxd.chain_block (
    number bigint NOT NULL,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_event bigint NOT NULL,
    last_act bigint NOT NULL,
    events integer NOT NULL,
    acts integer NOT NULL,
    event_ids bigint[],
    submission_ids uuid[],
    leaves bytea,
    act_ids bigint[] NOT NULL,
    digest bytea NOT NULL,
    hash bytea NOT NULL,
    look_at timestamp with time zone DEFAULT (clock_timestamp() + '30 days'::interval)
);
CREATE TABLE outboxd.clock (
    id boolean DEFAULT true NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    jumps bigint DEFAULT 0 NOT NULL,
    jump_ms double precision,
    jumped_at timestamp with time zone,
    CONSTRAINT clock_id_check CHECK (id)
);
CREATE TABLE outboxd.history (
    id boolean DEFAULT true NOT NULL,
    system_id text,
    timeline bigint,
    database_oid bigint NOT NULL,
    ledger_oid bigint NOT NULL,
    agreed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    agreed_by text NOT NULL,
    marked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    marked_lsn pg_lsn,
    synchronous_until timestamp with time zone,
    found_at timestamp with time zone,
    found text,
    found_by text,
    may_go_on boolean DEFAULT false NOT NULL,
    doubtful_before timestamp with time zone,
    written_by xid8,
    marked_event bigint,
    CONSTRAINT history_check CHECK ((((found_at IS NULL) = (found IS NULL)) AND ((found_at IS NULL) = (found_by IS NULL)))),
    CONSTRAINT history_check1 CHECK (((NOT may_go_on) OR (found_at IS NOT NULL))),
    CONSTRAINT history_id_check CHECK (id)
);
CREATE TABLE outboxd.instance (
    id uuid NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    beat_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    version text NOT NULL,
    host text NOT NULL,
    types text[],
    reload_asked integer DEFAULT 0 NOT NULL,
    reload_answered integer DEFAULT 0 NOT NULL,
    reload_problem text
);
CREATE TABLE outboxd.instance_setting (
    instance_id uuid NOT NULL,
    host text NOT NULL,
    requests integer NOT NULL,
    window_ms bigint NOT NULL,
    request_timeout_ms bigint NOT NULL,
    key_on_failure text NOT NULL,
    said_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE outboxd.migration (
    id integer NOT NULL,
    name character varying(255) NOT NULL,
    run_on timestamp without time zone NOT NULL
);
CREATE SEQUENCE outboxd.migration_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE outboxd.migration_id_seq OWNED BY outboxd.migration.id;
CREATE TABLE outboxd.operator_act (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    act text NOT NULL,
    who text NOT NULL,
    account text,
    reason text,
    until timestamp with time zone,
    detail jsonb
);
ALTER TABLE outboxd.operator_act ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME outboxd.operator_act_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE outboxd.outbox_cursor (
    outbox text NOT NULL,
    "position" text[] NOT NULL,
    advanced_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    epoch smallint DEFAULT 1 NOT NULL,
    sequence_file text,
    same_upto text[]
);
ALTER TABLE outboxd.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME outboxd.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE outboxd.passage (
    resource text NOT NULL,
    met text NOT NULL,
    count bigint NOT NULL,
    at bigint NOT NULL,
    CONSTRAINT passage_resource_check CHECK ((resource = ANY (ARRAY['data'::text, 'orders'::text])))
)
WITH (fillfactor='50');
CREATE TABLE outboxd.pause (
    reason text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    until timestamp with time zone,
    level integer DEFAULT 0 NOT NULL,
    detail text NOT NULL,
    probe_until timestamp with time zone,
    cleared_at timestamp with time zone,
    set_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pause_check CHECK (((until IS NOT NULL) OR (reason = ANY (ARRAY['operator'::text, 'history'::text])))),
    CONSTRAINT pause_reason_check CHECK ((reason = ANY (ARRAY['throttled'::text, 'unavailable'::text, 'unauthorized'::text, 'unreachable'::text, 'operator'::text, 'history'::text])))
);
CREATE TABLE outboxd.period (
    span text NOT NULL,
    began_at timestamp with time zone NOT NULL,
    completed integer NOT NULL,
    failed integer NOT NULL,
    rejected integer NOT NULL,
    uncertain integer NOT NULL,
    discarded integer NOT NULL,
    wait_p50_ms double precision,
    wait_p95_ms double precision,
    waiting bigint,
    CONSTRAINT period_span_check CHECK ((span = ANY (ARRAY['minute'::text, 'hour'::text])))
);
CREATE TABLE outboxd.problem (
    kind text NOT NULL,
    subject text NOT NULL,
    detail text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    times bigint DEFAULT 1 NOT NULL,
    retry_at timestamp with time zone
);
CREATE TABLE outboxd.pruned_submission (
    outbox_id text NOT NULL,
    outbox smallint NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    row_stamp text,
    recorded_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    transaction_id text,
    pruned_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    look_at timestamp with time zone DEFAULT (clock_timestamp() + '366 days'::interval) NOT NULL,
    was_gone boolean DEFAULT false NOT NULL,
    CONSTRAINT pruned_submission_state_check CHECK ((state = ANY (ARRAY['completed'::text, 'discarded'::text])))
);
CREATE TABLE outboxd.refusal_run (
    resource text NOT NULL,
    fingerprint text NOT NULL,
    said text NOT NULL,
    submissions uuid[] NOT NULL,
    is_mass boolean DEFAULT false NOT NULL,
    CONSTRAINT refusal_run_resource_check CHECK ((resource = ANY (ARRAY['data'::text, 'orders'::text])))
);
CREATE TABLE outboxd.request_count (
    minute timestamp with time zone NOT NULL,
    kind text NOT NULL,
    instance_id uuid NOT NULL,
    requests integer NOT NULL,
    failed integer NOT NULL,
    answered integer NOT NULL,
    slow integer NOT NULL,
    CONSTRAINT request_count_check CHECK ((((failed >= 0) AND (failed <= requests)) AND ((answered >= 0) AND (answered <= requests)) AND ((slow >= 0) AND (slow <= answered)))),
    CONSTRAINT request_count_kind_check CHECK ((kind = ANY (ARRAY['submit'::text, 'status'::text])))
)
WITH (fillfactor='50');
CREATE TABLE outboxd.request_hour (
    hour timestamp with time zone NOT NULL,
    kind text NOT NULL,
    requests bigint NOT NULL,
    failed bigint NOT NULL,
    answered bigint NOT NULL,
    slow bigint NOT NULL,
    CONSTRAINT request_hour_kind_check CHECK ((kind = ANY (ARRAY['submit'::text, 'status'::text])))
);
CREATE TABLE outboxd.skipped_row (
    outbox_id text NOT NULL,
    captured boolean NOT NULL,
    times integer DEFAULT 1 NOT NULL,
    retry_at timestamp with time zone NOT NULL,
    outbox smallint DEFAULT outboxd.current_outbox() NOT NULL
);
CREATE TABLE outboxd.slot (
    id integer NOT NULL,
    permits integer NOT NULL,
    free_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    lease bigint DEFAULT 0 NOT NULL,
    taken_by uuid,
    spent_on_submissions integer DEFAULT 0 NOT NULL,
    retired_permits integer DEFAULT 0 NOT NULL,
    set_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    spent_on_polls integer DEFAULT 0 NOT NULL,
    spent_on_others integer DEFAULT 0 NOT NULL,
    CONSTRAINT slot_permits_check CHECK ((permits >= 0)),
    CONSTRAINT slot_retired_permits_check CHECK ((retired_permits >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');
CREATE TABLE outboxd.state_delta (
    state text NOT NULL,
    delta bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');
CREATE TABLE outboxd.submission (
    id uuid NOT NULL,
    seq bigint NOT NULL,
    outbox_id text NOT NULL,
    type text NOT NULL,
    key text,
    resource text,
    payload text,
    body text,
    tracked boolean DEFAULT true NOT NULL,
    sends_own_id boolean DEFAULT false NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    captured_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    state text NOT NULL,
    revision integer DEFAULT 0 NOT NULL,
    held boolean DEFAULT false NOT NULL,
    due_at timestamp with time zone,
    attempt integer DEFAULT 0 NOT NULL,
    idempotency_key uuid NOT NULL,
    claim_id uuid,
    instance_id uuid,
    sent_at timestamp with time zone,
    in_doubt boolean DEFAULT false NOT NULL,
    server_errors integer DEFAULT 0 NOT NULL,
    renewed_keys integer DEFAULT 0 NOT NULL,
    resubmissions integer DEFAULT 0 NOT NULL,
    repeated_after_401 boolean DEFAULT false NOT NULL,
    transaction_id text,
    probing boolean DEFAULT false NOT NULL,
    job_id uuid,
    accepted_at timestamp with time zone,
    poll_at timestamp with time zone,
    polls integer DEFAULT 0 NOT NULL,
    fruitless integer DEFAULT 0 NOT NULL,
    unknown_since timestamp with time zone,
    not_done_ms bigint,
    done_ms bigint,
    error_code text,
    error text,
    result text,
    ended_at timestamp with time zone,
    report_due boolean DEFAULT false NOT NULL,
    report_put_off integer,
    report_not_before timestamp with time zone,
    report_failures integer DEFAULT 0 NOT NULL,
    outbox smallint DEFAULT outboxd.current_outbox() NOT NULL,
    row_stamp text,
    may_have_arrived boolean DEFAULT false NOT NULL,
    id_by_person boolean DEFAULT false NOT NULL,
    polled_rarely boolean DEFAULT false NOT NULL,
    met_pause text,
    met_times integer DEFAULT 0 NOT NULL,
    met_passages bigint,
    refused_polls integer DEFAULT 0 NOT NULL,
    refused_event bigint,
    emptied_at timestamp with time zone,
    erased_at timestamp with time zone,
    CONSTRAINT submission_check CHECK (((state <> ALL (ARRAY['queued'::text, 'sending'::text, 'accepted'::text])) OR (body IS NOT NULL))),
    CONSTRAINT submission_check1 CHECK (((NOT held) OR (state = 'queued'::text))),
    CONSTRAINT submission_check10 CHECK (((met_pause IS NULL) = (met_times = 0))),
    CONSTRAINT submission_check11 CHECK (((met_pause IS NULL) OR (met_passages IS NOT NULL))),
    CONSTRAINT submission_check12 CHECK (((refused_polls = 0) OR (refused_event IS NOT NULL))),
    CONSTRAINT submission_check13 CHECK (((emptied_at IS NULL) OR (state = ANY (ARRAY['completed'::text, 'discarded'::text])))),
    CONSTRAINT submission_check14 CHECK (((erased_at IS NULL) OR ((emptied_at IS NOT NULL) AND (num_nonnulls(key, payload, body, result, error) = 0)))),
    CONSTRAINT submission_check2 CHECK (((state = 'queued'::text) = (due_at IS NOT NULL))),
    CONSTRAINT submission_check3 CHECK ((((state = 'sending'::text) AND (NOT probing)) = ((claim_id IS NOT NULL) AND (instance_id IS NOT NULL)))),
    CONSTRAINT submission_check4 CHECK (((NOT probing) OR (state = 'sending'::text))),
    CONSTRAINT submission_check5 CHECK ((((state = 'accepted'::text) OR probing) = ((job_id IS NOT NULL) AND (poll_at IS NOT NULL)))),
    CONSTRAINT submission_check6 CHECK (((state <> 'accepted'::text) OR ((transaction_id IS NOT NULL) AND (accepted_at IS NOT NULL)))),
    CONSTRAINT submission_check7 CHECK (((state = ANY (ARRAY['completed'::text, 'failed'::text, 'rejected'::text, 'uncertain'::text, 'discarded'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT submission_check8 CHECK (((NOT may_have_arrived) OR (state = ANY (ARRAY['failed'::text, 'rejected'::text, 'discarded'::text])))),
    CONSTRAINT submission_check9 CHECK (((NOT id_by_person) OR (transaction_id IS NOT NULL))),
    CONSTRAINT submission_met_pause_check CHECK ((met_pause = ANY (ARRAY['throttled'::text, 'unavailable'::text, 'unauthorized'::text, 'unreachable'::text]))),
    CONSTRAINT submission_resource_check CHECK ((resource = ANY (ARRAY['data'::text, 'orders'::text]))),
    CONSTRAINT submission_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'sending'::text, 'accepted'::text, 'completed'::text, 'failed'::text, 'rejected'::text, 'uncertain'::text, 'discarded'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');
CREATE TABLE outboxd.submission_event (
    id bigint NOT NULL,
    submission_id uuid NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    from_state text,
    to_state text NOT NULL,
    attempt integer NOT NULL,
    cause text NOT NULL,
    who text NOT NULL,
    detail jsonb,
    amounts jsonb,
    contents_digest bytea,
    detail_digest bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.05');
ALTER TABLE outboxd.submission_event ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME outboxd.submission_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE outboxd.submission ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME outboxd.submission_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW outboxd.taken_row AS
 SELECT submission.outbox_id,
    submission.outbox,
    submission.type,
    submission.row_stamp,
    submission.recorded_at,
    submission.state
   FROM outboxd.submission
UNION ALL
 SELECT pruned_submission.outbox_id,
    pruned_submission.outbox,
    pruned_submission.type,
    pruned_submission.row_stamp,
    pruned_submission.recorded_at,
    pruned_submission.state
   FROM outboxd.pruned_submission;
CREATE TABLE pgboss.bam (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    queue text,
    table_name text NOT NULL,
    command text NOT NULL,
    error text,
    created_on timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone
);
CREATE TABLE pgboss.job (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    data jsonb,
    state pgboss.job_state DEFAULT 'created'::pgboss.job_state NOT NULL,
    retry_limit integer DEFAULT 2 NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    retry_delay integer DEFAULT 0 NOT NULL,
    retry_backoff boolean DEFAULT false NOT NULL,
    retry_delay_max integer,
    expire_seconds integer DEFAULT 900 NOT NULL,
    deletion_seconds integer DEFAULT 604800 NOT NULL,
    singleton_key text,
    singleton_on timestamp without time zone,
    group_id text,
    group_tier text,
    start_after timestamp with time zone DEFAULT now() NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone,
    keep_until timestamp with time zone DEFAULT (now() + '336:00:00'::interval) NOT NULL,
    output jsonb,
    dead_letter text,
    policy text,
    heartbeat_on timestamp with time zone,
    heartbeat_seconds integer,
    blocked boolean DEFAULT false NOT NULL,
    blocking boolean DEFAULT false NOT NULL,
    pending_dependencies integer DEFAULT 0 NOT NULL,
    source_name text,
    source_id uuid,
    source_created_on timestamp with time zone,
    source_retry_count integer,
    source_output jsonb,
    source_root_id uuid
)
PARTITION BY LIST (name);
CREATE TABLE pgboss.job_common (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    data jsonb,
    state pgboss.job_state DEFAULT 'created'::pgboss.job_state NOT NULL,
    retry_limit integer DEFAULT 2 NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    retry_delay integer DEFAULT 0 NOT NULL,
    retry_backoff boolean DEFAULT false NOT NULL,
    retry_delay_max integer,
    expire_seconds integer DEFAULT 900 NOT NULL,
    deletion_seconds integer DEFAULT 604800 NOT NULL,
    singleton_key text,
    singleton_on timestamp without time zone,
    group_id text,
    group_tier text,
    start_after timestamp with time zone DEFAULT now() NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone,
    keep_until timestamp with time zone DEFAULT (now() + '336:00:00'::interval) NOT NULL,
    output jsonb,
    dead_letter text,
    policy text,
    heartbeat_on timestamp with time zone,
    heartbeat_seconds integer,
    blocked boolean DEFAULT false NOT NULL,
    blocking boolean DEFAULT false NOT NULL,
    pending_dependencies integer DEFAULT 0 NOT NULL,
    source_name text,
    source_id uuid,
    source_created_on timestamp with time zone,
    source_retry_count integer,
    source_output jsonb,
    source_root_id uuid,
    CONSTRAINT job_key_strict_fifo_singleton_key_check CHECK ((NOT ((policy = 'key_strict_fifo'::text) AND (singleton_key IS NULL))))
);
CREATE TABLE pgboss.job_dependency (
    child_name text NOT NULL,
    child_id uuid NOT NULL,
    parent_name text NOT NULL,
    parent_id uuid NOT NULL
);
CREATE TABLE pgboss.queue (
    name text NOT NULL,
    policy text NOT NULL,
    retry_limit integer NOT NULL,
    retry_delay integer NOT NULL,
    retry_backoff boolean NOT NULL,
    retry_delay_max integer,
    expire_seconds integer NOT NULL,
    retention_seconds integer NOT NULL,
    deletion_seconds integer NOT NULL,
    dead_letter text,
    partition boolean NOT NULL,
    table_name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    warning_queued integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer DEFAULT 0 NOT NULL,
    completed_delta integer DEFAULT 0 NOT NULL,
    failed_delta integer DEFAULT 0 NOT NULL,
    delta_on timestamp with time zone,
    delta_seconds integer,
    ready_history integer[] DEFAULT '{}'::integer[] NOT NULL,
    heartbeat_seconds integer,
    notify boolean DEFAULT false NOT NULL,
    singletons_active text[],
    monitor_claim_on timestamp with time zone,
    monitor_on timestamp with time zone,
    maintain_on timestamp with time zone,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT queue_check CHECK ((dead_letter IS DISTINCT FROM name))
);
CREATE TABLE pgboss.queue_stats (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
)
PARTITION BY RANGE (captured_on);
CREATE TABLE pgboss.queue_stats_20261123 (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE pgboss.queue_stats_20261124 (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE pgboss.schedule (
    name text NOT NULL,
    key text DEFAULT ''::text NOT NULL,
    kind text DEFAULT 'cron'::text NOT NULL,
    cron text NOT NULL,
    timezone text DEFAULT 'UTC'::text,
    data jsonb,
    options jsonb,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL,
    last_job_id uuid,
    CONSTRAINT schedule_kind_check CHECK ((kind = ANY (ARRAY['cron'::text, 'rrule'::text])))
);
CREATE TABLE pgboss.subscription (
    event text NOT NULL,
    name text NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE pgboss.version (
    version integer NOT NULL,
    cron_on timestamp with time zone,
    bam_on timestamp with time zone,
    flow_on timestamp with time zone,
    reindex_on timestamp with time zone,
    monitor_backoff_on timestamp with time zone
);
CREATE TABLE pgboss.warning (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    type text NOT NULL,
    message text NOT NULL,
    data jsonb,
    created_on timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.outbox (
    id bigint NOT NULL,
    type text NOT NULL,
    key text,
    payload jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    status text DEFAULT 'new'::text NOT NULL,
    transaction_id text,
    error_code text,
    error text,
    updated_at timestamp with time zone
);
ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY pgboss.job ATTACH PARTITION pgboss.job_common DEFAULT;
ALTER TABLE ONLY pgboss.queue_stats ATTACH PARTITION pgboss.queue_stats_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');
ALTER TABLE ONLY pgboss.queue_stats ATTACH PARTITION pgboss.queue_stats_20261124 FOR VALUES FROM ('2026-11-24 00:00:00+00') TO ('2026-11-25 00:00:00+00');
ALTER TABLE ONLY outboxd.migration ALTER COLUMN id SET DEFAULT nextval('outboxd.migration_id_seq'::regclass);
INSERT INTO outboxd.budget VALUES
	(true, 10000, 60000);
INSERT INTO outboxd.chain_block VALUES
	(1, '2026-11-23 18:00:34.250214+00', 69, 0, 39, 0, '{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,67,68,69}', '{01a20990-a677-73c6-a7b6-30e4d7340919,01a20990-a685-740b-8030-c2d2819cbcfe,01a20990-a686-73be-965b-a1da93f7021c,01a20990-a686-73be-965b-a7788846da0a,01a20990-a686-73be-965b-a87adc7e66aa,01a20990-a686-73be-965b-ac719139ea71,01a20990-a686-73be-965b-b354c4a6df9e,01a20990-a687-761f-97f5-efdf597f5cd4,01a20990-a677-73c6-a7b6-30e4d7340919,01a20990-a685-740b-8030-c2d2819cbcfe,01a20990-a686-73be-965b-a1da93f7021c,01a20990-a686-73be-965b-a7788846da0a,01a20990-a686-73be-965b-a87adc7e66aa,01a20990-a686-73be-965b-b354c4a6df9e,01a20990-a687-761f-97f5-efdf597f5cd4,01a20990-a686-73be-965b-a87adc7e66aa,01a20990-a677-73c6-a7b6-30e4d7340919,01a20990-a687-761f-97f5-efdf597f5cd4,01a20990-a686-73be-965b-b354c4a6df9e,01a20990-a686-73be-965b-a7788846da0a,01a20990-a685-740b-8030-c2d2819cbcfe,01a20990-a686-73be-965b-a1da93f7021c,01a20990-a686-73be-965b-a1da93f7021c,01a20990-a677-73c6-a7b6-30e4d7340919,01a20990-a686-73be-965b-a7788846da0a,01a20990-a686-73be-965b-b354c4a6df9e,01a20990-a685-740b-8030-c2d2819cbcfe,01a20990-a687-761f-97f5-efdf597f5cd4,01a20990-c03e-757e-ab1e-ca718d287082,01a20990-c03e-757e-ab1e-ca718d287082,01a20990-c03e-757e-ab1e-ca718d287082,01a20990-c123-71ca-af16-4094eadcbe76,01a20990-c123-71ca-af16-4094eadcbe76,01a20990-c123-71ca-af16-4094eadcbe76,01a20990-c123-71ca-af16-4094eadcbe76,01a20990-c123-71ca-af16-4094eadcbe76,01a20991-15a1-71ee-a99f-a486770cbdb8,01a20991-15a1-71ee-a99f-a486770cbdb8,01a20991-15a1-71ee-a99f-a486770cbdb8}', '\x908f8c862b79a45639e8ffa4bf78db48ac2b549bdf477d2e0e3cf0c3a3fba2a4e7c94db5f79cc4848800ac035af35041ebd4ba32515de1477349ccc5ac22cdc4dadaa43c02fa735834448718e370a9b4eadb92ba0de676270471b51601d5116eb07b4efd24e8027f33bc2ff5ec21b590a1d92fdc371aba8b25fb3bf5ca608de05093987426ea53a0977bf6b54781b59488bf3d3220a03c574e750d5bd8ab4f844ad67445ea3feebf605c124266e727d9128e4d0227412bc816eb32cc89848366c6f5cbc7c42eb32f8be5c684b277ba90951ab9c6da06a39242ee1596e411593fb0da1c77f74fa051be6643978e752e32e2722cb2b751c5fe7de7a7b604ad302c44a51f5ba37a645ac735a16a92dee4f6c68652aa1f2242a5e2798ab9355087e27a01cd504103b7b267e747f2d48dedb57e91232afe14e8ed036134374afb276b35c2a59ca8a99b7bb5c68c19831a8df1b9db8bd8bb868d9df2a2c20e1a91c14b93459fb648f03009d5406a8015fef9f8cca43c79f54a3e0febef8fd8730138ac38f840c96bc91c2fc0c697a9397160dd9a69eb61160b8fb9b29718b86dd2d2dd3b0e504d42d5b6414f2a16d8ea0a70b9fe31b9546e16d935bd79e3ee1f0d404469ce82313025578436fe7f2b0767c74dbba785e5fe4ba85f25d5cbd2507dae52423af9884b9ed11fbc6de2c4c255bd5aa8ecb8e550b8cd10d0f56a7b9010181ea67ef6859d2c5e87e5238763ec8c1ee155e6c7e1cd1c13582d393df4e976cf48ec31d61d7d0746eb2548cb2f3f36de7fd4707947ac871d7306126a598f96ff0e35c05e6ea044bce87c56a1870dc3b783c8cc46ca8b8e07aeddbf842cf6c8fe40242354c197b5b5936b2cb2a0b5023e30607dea433c13b13e1ae66bb0be862228955e9ae0a2caf8722bfde5ff69b2d327c5ffdc1a90e548c03dd4a9ab3bf5fe7d7edc16d661757ffeb896dd886f0de5442a405038a26538695e532c8f24aab3569b6aaa739391f10b66facfa44a18a0a9e543bbf404cf864952844877ca8942535b2c32ea6c1b85d616056c692a889deef6bba54f4ef80b2ea30ddf3fd8a74ab22e455e94202a3df5304f5f9da9927b528aa6770d3f20852792211c990a3a48cda5b515268e994855d83b2fb67eade882e371e16b7e69748ec13de86666597385fa414e3bd8542310d095930e79e91d6765b2d19f3223f267354758dd9296795bf8f4a501b9714a838e8d9b90af35509042867a5ff5fa760146c20e439dd32a32b6c698d8839344550ceecfdc359f1384abb835c782e53a9465565e7ad9071d8a3119617aabd2dc385118ab397aafc936400bd2cefd1ebab927114b1511803fb722529c2fd8589f74440f8ece22797fdcdd7414d8d4b9170853a2b3f8c03a54b4bd565b8e2fa17010a7ffb67236707c34d64bb25d6942e8167cdca62654d584b4cda31dbe09758068208dcb5ea8d4cff66fada2eb1fd7cf180994f3d355237bce8969fd39f92eba27650cdab9971c2f811f511502515a687a0036db834c6657fec808b0caa222b4e54dbc61259c0d56db6da6ad08240cf129350d97ac78d6a52da775342d7288fd239e3889cdf94846d4838f9da83a6155703eccbc0208ea19c3d5031b0654d33078a5068d5dde91f83afc6cfbab37b954068d6bcb688e39cc7d0afe2851dfcada085b4e5e0ba372143e970f8074e2894afe8978b8a862b0c461f80c0e9d70cecc2e122877539e802e052c3e02e322d4b252601207f891e636a0', '{}', '\x0f0d4bedb0574057c8b03bc9dca41b889ba24b660efcf691e01fbefb42681069', '\x6290031bf79ce81cb23812da37b5e6af52aee1ab2e0b6f68ac92510281b8c148', '2026-12-23 18:00:34.250215+00');
INSERT INTO outboxd.clock VALUES
	(true, '2026-11-23 18:00:37.847209+00', 0, NULL, NULL);
INSERT INTO outboxd.history VALUES
	(true, '7711428123421706687', 2, 16384, 16394, '2026-11-23 18:00:32.571115+00', 'daemon adeebb54', '2026-11-23 18:00:32.571115+00', '0/F006F0', NULL, NULL, NULL, NULL, false, NULL, '868', NULL);
INSERT INTO outboxd.instance VALUES
	('adeebb54-d8ed-46d9-9e2e-b1b7236bd204', '2026-11-23 18:00:03.602579+00', '2026-11-23 18:00:37.051903+00', '0.2.0', 'vm', '{data,order}', 0, 0, NULL);
INSERT INTO outboxd.instance_setting VALUES
	('adeebb54-d8ed-46d9-9e2e-b1b7236bd204', 'vm', 10000, 60000, 60000, 'continue', '2026-11-23 18:00:34.649317+00');
INSERT INTO outboxd.migration VALUES
	(1, '0001_ledger', '2026-11-23 17:59:52.148129'),
	(2, '0002_outbox_cursor', '2026-11-23 17:59:52.35613'),
	(3, '0003_problem', '2026-11-23 17:59:52.385854'),
	(4, '0004_skipped_row', '2026-11-23 17:59:52.413228'),
	(5, '0005_report', '2026-11-23 17:59:52.44522'),
	(6, '0006_outbox', '2026-11-23 17:59:52.482753'),
	(7, '0007_arrivals', '2026-11-23 17:59:52.562565'),
	(8, '0008_passage', '2026-11-23 17:59:52.598759'),
	(9, '0010_budget', '2026-11-23 17:59:52.670637'),
	(10, '0011_same_rows', '2026-11-23 17:59:52.749252'),
	(11, '0012_refused_polls', '2026-11-23 17:59:52.768755'),
	(12, '0013_persons_ids', '2026-11-23 17:59:52.790676'),
	(13, '0014_lookups', '2026-11-23 17:59:52.805632'),
	(14, '0015_request_count', '2026-11-23 17:59:52.89881'),
	(15, '0016_reload', '2026-11-23 17:59:53.091027'),
	(16, '0017_readings', '2026-11-23 17:59:53.153005'),
	(17, '0018_retention', '2026-11-23 17:59:53.159273'),
	(18, '0019_forgetting', '2026-11-23 17:59:53.220947'),
	(19, '0020_minutes', '2026-11-23 17:59:53.266414'),
	(20, '0021_audit', '2026-11-23 17:59:53.332566'),
	(21, '0022_amounts', '2026-11-23 17:59:53.368167'),
	(22, '0023_types', '2026-11-23 17:59:53.406935'),
	(23, '0024_chain', '2026-11-23 17:59:53.459677'),
	(24, '0025_rarity', '2026-11-23 17:59:53.514617'),
	(25, '0026_history', '2026-11-23 17:59:53.566103'),
	(26, '0027_written', '2026-11-23 17:59:53.661148'),
	(27, '0028_marked_event', '2026-11-23 17:59:53.702693');
INSERT INTO outboxd.operator_act OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-23 18:00:38.574707+00', 'pause', 'operator root', 'root@vm', 'upgrade', NULL, NULL);
INSERT INTO outboxd.outbox OVERRIDING SYSTEM VALUE VALUES
	(1, 'erp', 'public.outbox', 'id', NULL, NULL, '2026-11-23 17:59:52.50004+00', 'daemon adeebb54', '2026-11-23 18:00:04.122778+00', true, false, 0);
INSERT INTO outboxd.passage VALUES
	('data', '', 11, 11);
INSERT INTO outboxd.pause VALUES
	('operator', '2026-11-23 18:00:38.574707+00', NULL, 0, 'upgrade (operator root)', NULL, NULL, '2026-11-23 18:00:38.575621+00');
INSERT INTO outboxd.period VALUES
	('minute', '2026-11-23 17:58:00+00', 0, 0, 0, 0, 0, NULL, NULL, 8),
	('hour', '2026-11-23 16:00:00+00', 0, 0, 0, 0, 0, NULL, NULL, NULL),
	('minute', '2026-11-23 17:59:00+00', 0, 0, 0, 0, 0, NULL, NULL, 0),
	('hour', '2026-11-23 17:00:00+00', 0, 0, 0, 0, 0, NULL, NULL, 8);
INSERT INTO outboxd.request_count VALUES
	('2026-11-23 18:00:00+00', 'submit', 'adeebb54-d8ed-46d9-9e2e-b1b7236bd204', 13, 2, 11, 0),
	('2026-11-23 18:00:00+00', 'status', 'adeebb54-d8ed-46d9-9e2e-b1b7236bd204', 13, 0, 13, 0);
INSERT INTO outboxd.slot VALUES
	(11, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197245+00', 0, 0),
	(12, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197247+00', 0, 0),
	(13, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197248+00', 0, 0),
	(14, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.19725+00', 0, 0),
	(15, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197252+00', 0, 0),
	(16, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197254+00', 0, 0),
	(17, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197256+00', 0, 0),
	(18, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197258+00', 0, 0),
	(19, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197259+00', 0, 0),
	(20, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197261+00', 0, 0),
	(21, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197263+00', 0, 0),
	(22, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197265+00', 0, 0),
	(23, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197269+00', 0, 0),
	(24, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197271+00', 0, 0),
	(25, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197273+00', 0, 0),
	(26, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197274+00', 0, 0),
	(27, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197276+00', 0, 0),
	(28, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197278+00', 0, 0),
	(29, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197279+00', 0, 0),
	(30, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197281+00', 0, 0),
	(31, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197283+00', 0, 0),
	(32, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197285+00', 0, 0),
	(33, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197286+00', 0, 0),
	(34, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197288+00', 0, 0),
	(35, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.19729+00', 0, 0),
	(36, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197291+00', 0, 0),
	(37, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197293+00', 0, 0),
	(38, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197295+00', 0, 0),
	(39, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197297+00', 0, 0),
	(40, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197299+00', 0, 0),
	(41, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197302+00', 0, 0),
	(42, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197303+00', 0, 0),
	(43, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197305+00', 0, 0),
	(44, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197307+00', 0, 0),
	(45, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197308+00', 0, 0),
	(46, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.19731+00', 0, 0),
	(47, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197312+00', 0, 0),
	(48, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197313+00', 0, 0),
	(9, 20, '2026-11-23 18:02:42.426074+00', 1, 'adeebb54-d8ed-46d9-9e2e-b1b7236bd204', 0, 0, '2026-11-23 18:00:36.426078+00', 0, 0),
	(3, 20, '2026-11-23 18:01:10.924351+00', 1, NULL, 0, 0, '2026-11-23 18:00:10.92436+00', 5, 0),
	(1, 20, '2026-11-23 18:01:06.810388+00', 1, NULL, 0, 0, '2026-11-23 18:00:06.810396+00', 0, 1),
	(2, 20, '2026-11-23 18:01:06.810431+00', 1, NULL, 7, 0, '2026-11-23 18:00:06.810431+00', 0, 0),
	(4, 20, '2026-11-23 18:01:12.417452+00', 1, NULL, 2, 0, '2026-11-23 18:00:12.417462+00', 0, 0),
	(5, 20, '2026-11-23 18:01:13.043955+00', 1, NULL, 0, 0, '2026-11-23 18:00:13.043972+00', 0, 20),
	(6, 20, '2026-11-23 18:01:14.646074+00', 1, NULL, 0, 0, '2026-11-23 18:00:14.646082+00', 1, 0),
	(7, 20, '2026-11-23 18:01:34.503207+00', 1, NULL, 1, 0, '2026-11-23 18:00:34.503214+00', 0, 0),
	(8, 20, '2026-11-23 18:01:35.990302+00', 1, NULL, 3, 0, '2026-11-23 18:00:35.990309+00', 1, 0),
	(10, 20, '2026-11-23 18:01:39.020569+00', 1, NULL, 0, 0, '2026-11-23 18:00:39.020574+00', 3, 0),
	(49, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197315+00', 0, 0),
	(50, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197859+00', 0, 0),
	(51, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197861+00', 0, 0),
	(52, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197863+00', 0, 0),
	(53, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197864+00', 0, 0),
	(54, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197866+00', 0, 0),
	(55, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197867+00', 0, 0),
	(56, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197869+00', 0, 0),
	(57, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197871+00', 0, 0),
	(58, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197873+00', 0, 0),
	(59, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197876+00', 0, 0),
	(60, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197878+00', 0, 0),
	(61, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.19788+00', 0, 0),
	(62, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197881+00', 0, 0),
	(63, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197883+00', 0, 0),
	(64, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197884+00', 0, 0),
	(65, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197886+00', 0, 0),
	(66, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197888+00', 0, 0),
	(67, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197889+00', 0, 0),
	(68, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197891+00', 0, 0),
	(69, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197893+00', 0, 0),
	(70, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197894+00', 0, 0),
	(71, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197896+00', 0, 0),
	(72, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197897+00', 0, 0),
	(73, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197899+00', 0, 0),
	(74, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197901+00', 0, 0),
	(75, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.197902+00', 0, 0),
	(76, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212377+00', 0, 0),
	(77, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212393+00', 0, 0),
	(78, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212403+00', 0, 0),
	(79, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212405+00', 0, 0),
	(80, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212408+00', 0, 0),
	(81, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21241+00', 0, 0),
	(82, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212413+00', 0, 0),
	(83, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212415+00', 0, 0),
	(84, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212417+00', 0, 0),
	(85, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212419+00', 0, 0),
	(86, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212421+00', 0, 0),
	(87, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212423+00', 0, 0),
	(88, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212425+00', 0, 0),
	(89, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212427+00', 0, 0),
	(90, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212429+00', 0, 0),
	(91, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212431+00', 0, 0),
	(92, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212433+00', 0, 0),
	(93, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212434+00', 0, 0),
	(94, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212436+00', 0, 0),
	(95, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212438+00', 0, 0),
	(96, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212442+00', 0, 0),
	(97, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212444+00', 0, 0),
	(98, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21249+00', 0, 0),
	(99, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212492+00', 0, 0),
	(100, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212495+00', 0, 0),
	(101, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212496+00', 0, 0),
	(102, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212498+00', 0, 0),
	(103, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.2125+00', 0, 0),
	(104, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212502+00', 0, 0),
	(105, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212503+00', 0, 0),
	(106, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212506+00', 0, 0),
	(107, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212507+00', 0, 0),
	(108, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212509+00', 0, 0),
	(109, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212511+00', 0, 0),
	(110, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212512+00', 0, 0),
	(111, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212514+00', 0, 0),
	(112, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212516+00', 0, 0),
	(113, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212518+00', 0, 0),
	(114, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212521+00', 0, 0),
	(115, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212523+00', 0, 0),
	(116, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212525+00', 0, 0),
	(117, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212526+00', 0, 0),
	(118, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212528+00', 0, 0),
	(119, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21253+00', 0, 0),
	(120, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212532+00', 0, 0),
	(121, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212533+00', 0, 0),
	(122, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212535+00', 0, 0),
	(123, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212537+00', 0, 0),
	(124, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212539+00', 0, 0),
	(125, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21254+00', 0, 0),
	(126, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212542+00', 0, 0),
	(127, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212544+00', 0, 0),
	(128, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212545+00', 0, 0),
	(129, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212547+00', 0, 0),
	(130, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212549+00', 0, 0),
	(131, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212551+00', 0, 0),
	(132, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212554+00', 0, 0),
	(133, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212556+00', 0, 0),
	(134, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212558+00', 0, 0),
	(135, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212559+00', 0, 0),
	(136, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212561+00', 0, 0),
	(137, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212563+00', 0, 0),
	(138, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212565+00', 0, 0),
	(139, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212566+00', 0, 0),
	(140, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212568+00', 0, 0),
	(141, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21257+00', 0, 0),
	(142, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212572+00', 0, 0),
	(143, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212573+00', 0, 0),
	(144, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212575+00', 0, 0),
	(145, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212577+00', 0, 0),
	(146, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21259+00', 0, 0),
	(147, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212592+00', 0, 0),
	(148, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212593+00', 0, 0),
	(149, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212596+00', 0, 0),
	(150, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212599+00', 0, 0),
	(151, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212601+00', 0, 0),
	(152, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212602+00', 0, 0),
	(153, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212604+00', 0, 0),
	(154, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212606+00', 0, 0),
	(155, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212608+00', 0, 0),
	(156, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212609+00', 0, 0),
	(157, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212611+00', 0, 0),
	(158, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212613+00', 0, 0),
	(159, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212614+00', 0, 0),
	(160, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212616+00', 0, 0),
	(161, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212618+00', 0, 0),
	(162, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21262+00', 0, 0),
	(163, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212621+00', 0, 0),
	(164, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212623+00', 0, 0),
	(165, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212624+00', 0, 0),
	(166, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212626+00', 0, 0),
	(167, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212627+00', 0, 0),
	(168, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212629+00', 0, 0),
	(169, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212632+00', 0, 0),
	(170, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212634+00', 0, 0),
	(171, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212636+00', 0, 0),
	(172, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212637+00', 0, 0),
	(173, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212639+00', 0, 0),
	(174, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21264+00', 0, 0),
	(175, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212642+00', 0, 0),
	(176, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212644+00', 0, 0),
	(177, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212645+00', 0, 0),
	(178, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212647+00', 0, 0),
	(179, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212648+00', 0, 0),
	(180, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21265+00', 0, 0),
	(181, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212652+00', 0, 0),
	(182, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212653+00', 0, 0),
	(183, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212655+00', 0, 0),
	(184, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212656+00', 0, 0),
	(185, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212658+00', 0, 0),
	(186, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21266+00', 0, 0),
	(187, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212663+00', 0, 0),
	(188, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212665+00', 0, 0),
	(189, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212667+00', 0, 0),
	(190, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212668+00', 0, 0),
	(191, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21267+00', 0, 0),
	(192, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212671+00', 0, 0),
	(193, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212673+00', 0, 0),
	(194, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212685+00', 0, 0),
	(195, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212687+00', 0, 0),
	(196, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212688+00', 0, 0),
	(197, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21269+00', 0, 0),
	(198, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212691+00', 0, 0),
	(199, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212693+00', 0, 0),
	(200, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212695+00', 0, 0),
	(201, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212696+00', 0, 0),
	(202, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212698+00', 0, 0),
	(203, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.2127+00', 0, 0),
	(204, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212701+00', 0, 0),
	(205, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212705+00', 0, 0),
	(206, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212707+00', 0, 0),
	(207, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212708+00', 0, 0),
	(208, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21271+00', 0, 0),
	(209, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212712+00', 0, 0),
	(210, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212713+00', 0, 0),
	(211, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212715+00', 0, 0),
	(212, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212716+00', 0, 0),
	(213, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212718+00', 0, 0),
	(214, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21272+00', 0, 0),
	(215, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212721+00', 0, 0),
	(216, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212723+00', 0, 0),
	(217, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212725+00', 0, 0),
	(218, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212726+00', 0, 0),
	(219, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212728+00', 0, 0),
	(220, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212729+00', 0, 0),
	(221, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212731+00', 0, 0),
	(222, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212733+00', 0, 0),
	(223, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212736+00', 0, 0),
	(224, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212738+00', 0, 0),
	(225, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21274+00', 0, 0),
	(226, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212741+00', 0, 0),
	(227, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212743+00', 0, 0),
	(228, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212744+00', 0, 0),
	(229, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212746+00', 0, 0),
	(230, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212748+00', 0, 0),
	(231, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212749+00', 0, 0),
	(232, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212751+00', 0, 0),
	(233, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212753+00', 0, 0),
	(234, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212754+00', 0, 0),
	(235, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212756+00', 0, 0),
	(236, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212757+00', 0, 0),
	(237, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212759+00', 0, 0),
	(238, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21276+00', 0, 0),
	(239, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212762+00', 0, 0),
	(240, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212764+00', 0, 0),
	(241, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212765+00', 0, 0),
	(242, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21278+00', 0, 0),
	(243, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212782+00', 0, 0),
	(244, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212784+00', 0, 0),
	(245, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212785+00', 0, 0),
	(246, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212787+00', 0, 0),
	(247, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212789+00', 0, 0),
	(248, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21279+00', 0, 0),
	(249, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212792+00', 0, 0),
	(250, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212794+00', 0, 0),
	(251, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212795+00', 0, 0),
	(252, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212797+00', 0, 0),
	(253, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212798+00', 0, 0),
	(254, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.2128+00', 0, 0),
	(255, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212802+00', 0, 0),
	(256, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212803+00', 0, 0),
	(257, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212805+00', 0, 0),
	(258, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212807+00', 0, 0),
	(259, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212808+00', 0, 0),
	(260, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212812+00', 0, 0),
	(261, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212814+00', 0, 0),
	(262, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212815+00', 0, 0),
	(263, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212817+00', 0, 0),
	(264, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212818+00', 0, 0),
	(265, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21282+00', 0, 0),
	(266, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212822+00', 0, 0),
	(267, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212823+00', 0, 0),
	(268, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212825+00', 0, 0),
	(269, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212827+00', 0, 0),
	(270, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212829+00', 0, 0),
	(271, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21283+00', 0, 0),
	(272, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212832+00', 0, 0),
	(273, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212834+00', 0, 0),
	(274, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212835+00', 0, 0),
	(275, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212837+00', 0, 0),
	(276, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212838+00', 0, 0),
	(277, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21284+00', 0, 0),
	(278, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212843+00', 0, 0),
	(279, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212845+00', 0, 0),
	(280, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212847+00', 0, 0),
	(281, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212848+00', 0, 0),
	(282, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21285+00', 0, 0),
	(283, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212852+00', 0, 0),
	(284, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212853+00', 0, 0),
	(285, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212855+00', 0, 0),
	(286, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212856+00', 0, 0),
	(287, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212858+00', 0, 0),
	(288, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21286+00', 0, 0),
	(289, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212861+00', 0, 0),
	(290, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212874+00', 0, 0),
	(291, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212875+00', 0, 0),
	(292, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212877+00', 0, 0),
	(293, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212878+00', 0, 0),
	(294, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21288+00', 0, 0),
	(295, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212882+00', 0, 0),
	(296, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212885+00', 0, 0),
	(297, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212887+00', 0, 0),
	(298, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212889+00', 0, 0),
	(299, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21289+00', 0, 0),
	(300, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212892+00', 0, 0),
	(301, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212894+00', 0, 0),
	(302, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212896+00', 0, 0),
	(303, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212898+00', 0, 0),
	(304, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212899+00', 0, 0),
	(305, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212901+00', 0, 0),
	(306, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212903+00', 0, 0),
	(307, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212904+00', 0, 0),
	(308, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212906+00', 0, 0),
	(309, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212907+00', 0, 0),
	(310, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212909+00', 0, 0),
	(311, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212911+00', 0, 0),
	(312, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212912+00', 0, 0),
	(313, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212914+00', 0, 0),
	(314, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212915+00', 0, 0),
	(315, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212918+00', 0, 0),
	(316, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21292+00', 0, 0),
	(317, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212921+00', 0, 0),
	(318, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212923+00', 0, 0),
	(319, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212925+00', 0, 0),
	(320, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212926+00', 0, 0),
	(321, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212928+00', 0, 0),
	(322, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21293+00', 0, 0),
	(323, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212931+00', 0, 0),
	(324, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212933+00', 0, 0),
	(325, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212934+00', 0, 0),
	(326, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212936+00', 0, 0),
	(327, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212937+00', 0, 0),
	(328, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212939+00', 0, 0),
	(329, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212941+00', 0, 0),
	(330, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212942+00', 0, 0),
	(331, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212944+00', 0, 0),
	(332, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212946+00', 0, 0),
	(333, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212949+00', 0, 0),
	(334, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21295+00', 0, 0),
	(335, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212952+00', 0, 0),
	(336, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212954+00', 0, 0),
	(337, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212955+00', 0, 0),
	(338, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212967+00', 0, 0),
	(339, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212969+00', 0, 0),
	(340, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21297+00', 0, 0),
	(341, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212972+00', 0, 0),
	(342, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212974+00', 0, 0),
	(343, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212975+00', 0, 0),
	(344, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212977+00', 0, 0),
	(345, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212979+00', 0, 0),
	(346, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21298+00', 0, 0),
	(347, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212982+00', 0, 0),
	(348, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212983+00', 0, 0),
	(349, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212985+00', 0, 0),
	(350, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212987+00', 0, 0),
	(351, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21299+00', 0, 0),
	(352, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212991+00', 0, 0),
	(353, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212993+00', 0, 0),
	(354, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212995+00', 0, 0),
	(355, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212996+00', 0, 0),
	(356, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.212998+00', 0, 0),
	(357, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213+00', 0, 0),
	(358, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213001+00', 0, 0),
	(359, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213003+00', 0, 0),
	(360, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213004+00', 0, 0),
	(361, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213006+00', 0, 0),
	(362, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213007+00', 0, 0),
	(363, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213009+00', 0, 0),
	(364, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213011+00', 0, 0),
	(365, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213012+00', 0, 0),
	(366, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213014+00', 0, 0),
	(367, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213015+00', 0, 0),
	(368, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213017+00', 0, 0),
	(369, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21302+00', 0, 0),
	(370, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213022+00', 0, 0),
	(371, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213024+00', 0, 0),
	(372, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213025+00', 0, 0),
	(373, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213027+00', 0, 0),
	(374, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213029+00', 0, 0),
	(375, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21303+00', 0, 0),
	(376, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213032+00', 0, 0),
	(377, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213033+00', 0, 0),
	(378, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213035+00', 0, 0),
	(379, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213037+00', 0, 0),
	(380, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213039+00', 0, 0),
	(381, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21304+00', 0, 0),
	(382, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213042+00', 0, 0),
	(383, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213043+00', 0, 0),
	(384, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213045+00', 0, 0),
	(385, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213047+00', 0, 0),
	(386, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213058+00', 0, 0),
	(387, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213059+00', 0, 0),
	(388, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213062+00', 0, 0),
	(389, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213064+00', 0, 0),
	(390, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213065+00', 0, 0),
	(391, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213067+00', 0, 0),
	(392, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213068+00', 0, 0),
	(393, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21307+00', 0, 0),
	(394, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213072+00', 0, 0),
	(395, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213073+00', 0, 0),
	(396, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213075+00', 0, 0),
	(397, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213077+00', 0, 0),
	(398, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213078+00', 0, 0),
	(399, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21308+00', 0, 0),
	(400, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213081+00', 0, 0),
	(401, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213083+00', 0, 0),
	(402, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213085+00', 0, 0),
	(403, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213087+00', 0, 0),
	(404, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213088+00', 0, 0),
	(405, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21309+00', 0, 0),
	(406, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213093+00', 0, 0),
	(407, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213095+00', 0, 0),
	(408, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213097+00', 0, 0),
	(409, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21317+00', 0, 0),
	(410, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213174+00', 0, 0),
	(411, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213176+00', 0, 0),
	(412, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213177+00', 0, 0),
	(413, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213179+00', 0, 0),
	(414, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213181+00', 0, 0),
	(415, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213183+00', 0, 0),
	(416, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213185+00', 0, 0),
	(417, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213186+00', 0, 0),
	(418, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213188+00', 0, 0),
	(419, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21319+00', 0, 0),
	(420, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213193+00', 0, 0),
	(421, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213195+00', 0, 0),
	(422, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213197+00', 0, 0),
	(423, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213198+00', 0, 0),
	(424, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.2132+00', 0, 0),
	(425, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213202+00', 0, 0),
	(426, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213204+00', 0, 0),
	(427, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213205+00', 0, 0),
	(428, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213207+00', 0, 0),
	(429, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213209+00', 0, 0),
	(430, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213211+00', 0, 0),
	(431, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213212+00', 0, 0),
	(432, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213214+00', 0, 0),
	(433, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213216+00', 0, 0),
	(434, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213227+00', 0, 0),
	(435, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213228+00', 0, 0),
	(436, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21323+00', 0, 0),
	(437, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213232+00', 0, 0),
	(438, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213233+00', 0, 0),
	(439, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213236+00', 0, 0),
	(440, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213238+00', 0, 0),
	(441, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21324+00', 0, 0),
	(442, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213242+00', 0, 0),
	(443, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213243+00', 0, 0),
	(444, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213245+00', 0, 0),
	(445, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213247+00', 0, 0),
	(446, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213248+00', 0, 0),
	(447, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21325+00', 0, 0),
	(448, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213252+00', 0, 0),
	(449, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213253+00', 0, 0),
	(450, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213255+00', 0, 0),
	(451, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213257+00', 0, 0),
	(452, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213259+00', 0, 0),
	(453, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21326+00', 0, 0),
	(454, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213262+00', 0, 0),
	(455, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213264+00', 0, 0),
	(456, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213265+00', 0, 0),
	(457, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213269+00', 0, 0),
	(458, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213326+00', 0, 0),
	(459, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213328+00', 0, 0),
	(460, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21333+00', 0, 0),
	(461, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213332+00', 0, 0),
	(462, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213333+00', 0, 0),
	(463, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213335+00', 0, 0),
	(464, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213337+00', 0, 0),
	(465, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213338+00', 0, 0),
	(466, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21334+00', 0, 0),
	(467, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213342+00', 0, 0),
	(468, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213344+00', 0, 0),
	(469, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213346+00', 0, 0),
	(470, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213347+00', 0, 0),
	(471, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213349+00', 0, 0),
	(472, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213351+00', 0, 0),
	(473, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213352+00', 0, 0),
	(474, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213354+00', 0, 0),
	(475, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213358+00', 0, 0),
	(476, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21336+00', 0, 0),
	(477, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213361+00', 0, 0),
	(478, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213363+00', 0, 0),
	(479, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213365+00', 0, 0),
	(480, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213366+00', 0, 0),
	(481, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213368+00', 0, 0),
	(482, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21338+00', 0, 0),
	(483, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213382+00', 0, 0),
	(484, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213384+00', 0, 0),
	(485, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213386+00', 0, 0),
	(486, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213387+00', 0, 0),
	(487, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213389+00', 0, 0),
	(488, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213391+00', 0, 0),
	(489, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213392+00', 0, 0),
	(490, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213394+00', 0, 0),
	(491, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213396+00', 0, 0),
	(492, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213397+00', 0, 0),
	(493, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213401+00', 0, 0),
	(494, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213403+00', 0, 0),
	(495, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213404+00', 0, 0),
	(496, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213406+00', 0, 0),
	(497, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213408+00', 0, 0),
	(498, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.21341+00', 0, 0),
	(499, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213411+00', 0, 0),
	(500, 20, '-infinity', 0, NULL, 0, 0, '2026-11-23 18:00:03.213413+00', 0, 0);
INSERT INTO outboxd.state_delta VALUES
	('rejected', 1),
	('queued', 7),
	('sending', 7),
	('queued', -7),
	('sending', -1),
	('rejected', 1),
	('rejected', 1),
	('sending', -6),
	('accepted', 5),
	('accepted', -1),
	('completed', 1),
	('accepted', -1),
	('completed', 1),
	('accepted', -1),
	('completed', 1),
	('completed', 1),
	('failed', 1),
	('accepted', -2),
	('rejected', -1),
	('discarded', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('uncertain', 1),
	('sending', -1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('uncertain', 1),
	('sending', -1),
	('uncertain', -1),
	('accepted', 1),
	('accepted', -1),
	('completed', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
	('accepted', 1),
	('accepted', -1),
	('completed', 1),
	('queued', 3),
	('sending', 3),
	('queued', -3),
	('sending', -1),
	('accepted', 1),
	('sending', -2),
	('accepted', 2),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('queued', 2),
	('queued', 1);
INSERT INTO outboxd.submission OVERRIDING SYSTEM VALUE VALUES
	('01a20990-a686-73be-965b-ac719139ea71', 6, '6', 'data', NULL, 'data', '{"amount": 1.005, "field2": "cents", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', NULL, true, false, '2026-11-23 17:59:58.658001+00', '2026-11-23 18:00:04.810486+00', 'rejected', 0, false, NULL, 0, '48644164-8d8f-4156-9935-d232bd2aa8d7', NULL, NULL, NULL, false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 'total_amount (from amount) has 3 decimals, decimal(10,2) takes 2: "1.005"', NULL, '2026-11-23 18:00:04.810486+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T17:59:58.658001Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-a686-73be-965b-a87adc7e66aa', 5, '5', 'data', NULL, 'data', '{"amount": 12.5, "field2": "unknown", "orderDate": "2026-11-21T10:00:00Z", "customerId": "UNKNOWN1"}', '{"customerId":"UNKNOWN1","data":{"field1":"value1","field2":"unknown","customer_id":"UNKNOWN1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 17:59:58.600592+00', '2026-11-23 18:00:04.810477+00', 'rejected', 2, false, NULL, 1, '86d3fc03-1145-4bfb-8d74-43113cde90c0', NULL, NULL, '2026-11-23 18:00:05.296099+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 'E001', 'the service answered 400 E001: Invalid customer: UNKNOWN1 was not found.', NULL, '2026-11-23 18:00:05.672233+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T17:59:58.600592Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-a686-73be-965b-a1da93f7021c', 3, '3', 'data', NULL, 'data', '{"amount": 12.5, "field2": "done 2", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"done 2","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 17:59:58.564692+00', '2026-11-23 18:00:04.810418+00', 'completed', 3, false, NULL, 1, 'aea6f4bc-e167-4d42-923a-40ff8159c6e8', NULL, NULL, '2026-11-23 18:00:05.296061+00', false, 0, 0, 0, false, '05f56d40-0849-46a4-998f-714f1e65f499', false, NULL, '2026-11-23 18:00:05.726442+00', NULL, 1, 0, NULL, NULL, 3360, NULL, NULL, '{"customerId":"C1","processedAt":"2026-11-23T18:00:05.615Z"}', '2026-11-23 18:00:09.114429+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T17:59:58.564692Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-a677-73c6-a7b6-30e4d7340919', 1, '1', 'data', NULL, 'data', '{"amount": 12.5, "field2": "done 0", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"done 0","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 17:59:58.486536+00', '2026-11-23 18:00:04.809998+00', 'completed', 3, false, NULL, 1, 'b9214eb3-f1ce-415c-a516-9635d0f76b25', NULL, NULL, '2026-11-23 18:00:05.295719+00', false, 0, 0, 0, false, '85a91a99-bbf1-4cf5-9cc0-a85bc23a41cc', false, NULL, '2026-11-23 18:00:05.719455+00', NULL, 1, 0, NULL, NULL, 4008, NULL, NULL, '{"customerId":"C1","processedAt":"2026-11-23T18:00:05.548Z"}', '2026-11-23 18:00:09.748621+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T17:59:58.486536Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-a685-740b-8030-c2d2819cbcfe', 2, '2', 'data', NULL, 'data', '{"amount": 12.5, "field2": "done 1", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"done 1","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 17:59:58.550737+00', '2026-11-23 18:00:04.810389+00', 'completed', 3, false, NULL, 1, 'd5c929d2-f370-4694-8121-8c82ce7c396c', NULL, NULL, '2026-11-23 18:00:05.296037+00', false, 0, 0, 0, false, 'f5db35eb-d3ad-475a-a880-f635ce270e03', false, NULL, '2026-11-23 18:00:05.72643+00', NULL, 1, 0, NULL, NULL, 4079, NULL, NULL, '{"customerId":"C1","processedAt":"2026-11-23T18:00:05.588Z"}', '2026-11-23 18:00:09.888481+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T17:59:58.550737Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-a686-73be-965b-a7788846da0a', 4, '4', 'data', 'k', 'data', '{"amount": 12.5, "field2": "by key", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"by key","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 17:59:58.592916+00', '2026-11-23 18:00:04.810428+00', 'completed', 3, false, NULL, 1, '202a0d5a-d62c-4bc7-a859-f7d614a8a317', NULL, NULL, '2026-11-23 18:00:05.296076+00', false, 0, 0, 0, false, 'd7f9d79c-f6fc-4464-a05b-70a8d2d032fc', false, NULL, '2026-11-23 18:00:05.726412+00', NULL, 1, 0, NULL, NULL, 4047, NULL, NULL, '{"customerId":"C1","processedAt":"2026-11-23T18:00:05.586Z"}', '2026-11-23 18:00:09.835071+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T17:59:58.592916Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-a686-73be-965b-b354c4a6df9e', 7, '7', 'data', NULL, 'data', '{"amount": 12.5, "field2": "fail:E001", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"fail:E001","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 17:59:58.712323+00', '2026-11-23 18:00:04.810557+00', 'failed', 3, false, NULL, 1, '6e3cd6be-ad45-40e7-bced-a81079188906', NULL, NULL, '2026-11-23 18:00:05.296113+00', false, 0, 0, 0, false, 'ab089ce7-5a5f-48d3-b80a-fe04293f3b00', false, NULL, '2026-11-23 18:00:05.726391+00', NULL, 1, 0, NULL, NULL, 4068, 'E001', 'the service processed it: failed with E001', NULL, '2026-11-23 18:00:09.888299+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T17:59:58.712323Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20991-2311-7687-9772-fa29ac275ef3', 38, '38', 'data', NULL, 'data', '{"amount": 12.5, "field2": "on the wire", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"on the wire","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:36.244834+00', '2026-11-23 18:00:36.375706+00', 'sending', 1, false, NULL, 1, '3c732565-a710-488f-b17e-7f64aae26aec', '222a28be-4976-477c-bcb4-b1bdc8b3d263', 'adeebb54-d8ed-46d9-9e2e-b1b7236bd204', '2026-11-23 18:00:36.430804+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:36.244834Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20991-1f91-7307-9c7e-6b29e1f83acb', 37, '37', 'data', NULL, 'data', '{"amount": 12.5, "field2": "under way 2", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"under way 2","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:35.419534+00', '2026-11-23 18:00:35.502696+00', 'accepted', 4, false, NULL, 1, 'fef83933-8f38-43af-9d4c-c1f2b49ed8b1', NULL, NULL, '2026-11-23 18:00:35.544096+00', false, 0, 0, 0, false, '0de4ba55-5a59-4668-be90-49387564620b', false, '16ecdfb8-3a64-44c4-abe4-bef53e76fb2e', '2026-11-23 18:00:35.967862+00', '2026-11-23 18:00:39.695723+00', 2, 0, NULL, 2147, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:35.419534Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20991-1f91-7307-9c7e-6423309fc30d', 36, '36', 'data', NULL, 'data', '{"amount": 12.5, "field2": "under way 1", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"under way 1","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:35.418993+00', '2026-11-23 18:00:35.502672+00', 'accepted', 4, false, NULL, 1, '65dfbbc4-0cf0-4fe9-a453-78bbcc17e310', NULL, NULL, '2026-11-23 18:00:35.544037+00', false, 0, 0, 0, false, '14453e0e-1035-44e5-9864-478bd258341f', false, 'cef7aa8d-a95a-42b1-8402-1d600b49aa5c', '2026-11-23 18:00:35.968011+00', '2026-11-23 18:00:40.08966+00', 2, 0, NULL, 2424, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:35.418993Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20991-2cc7-7198-9e4e-db5d33d3ed8b', 39, '39', 'data', NULL, 'data', '{"amount": 12.5, "field2": "waits 0", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"waits 0","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:38.765493+00', '2026-11-23 18:00:38.857817+00', 'queued', 0, false, '2026-11-23 18:00:38.795047+00', 0, 'e1c8802d-6b7b-416a-b85e-76ec7ebf176e', NULL, NULL, NULL, false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:38.765493Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20991-2cc7-7198-9e4e-df8437d0b6bb', 40, '40', 'data', NULL, 'data', '{"amount": 12.5, "field2": "waits 1", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"waits 1","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:38.773963+00', '2026-11-23 18:00:38.866052+00', 'queued', 0, false, '2026-11-23 18:00:38.795047+00', 0, '1a1db83d-58ed-4df2-9bac-2072d1845a07', NULL, NULL, NULL, false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:38.773963Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20991-2d44-7081-96d2-a373842d40f8', 41, '41', 'data', NULL, 'data', '{"amount": 12.5, "field2": "behind", "orderDate": "2026-11-21T10:00:00Z", "customerId": "UNKNOWN3"}', '{"customerId":"UNKNOWN3","data":{"field1":"value1","field2":"behind","customer_id":"UNKNOWN3","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:38.909416+00', '2026-11-23 18:00:38.993407+00', 'queued', 0, false, '2026-11-23 18:00:38.938417+00', 0, 'd4fd648c-b2cf-4b4f-8516-06ddf6bd7618', NULL, NULL, NULL, false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:38.909416Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-a687-761f-97f5-efdf597f5cd4', 8, '8', 'data', NULL, 'data', '{"amount": 12.5, "field2": "given up", "orderDate": "2026-11-21T10:00:00Z", "customerId": "UNKNOWN2"}', '{"customerId":"UNKNOWN2","data":{"field1":"value1","field2":"given up","customer_id":"UNKNOWN2","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 17:59:58.743961+00', '2026-11-23 18:00:04.810566+00', 'discarded', 3, false, NULL, 1, '768e5fe4-bd7a-4ae8-b082-c17937143f0c', NULL, NULL, '2026-11-23 18:00:05.296125+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 'E001', 'the service answered 400 E001: Invalid customer: UNKNOWN2 was not found.', NULL, '2026-11-23 18:00:10.863549+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T17:59:58.743961Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-c03e-757e-ab1e-ca718d287082', 9, '9', 'data', NULL, 'data', '{"amount": 12.5, "field2": "no answer", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"no answer","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:11.030549+00', '2026-11-23 18:00:11.073876+00', 'uncertain', 2, false, NULL, 1, '205cdeda-0785-49e3-a59d-7d4c6e679379', NULL, NULL, '2026-11-23 18:00:11.099386+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 'the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived', NULL, '2026-11-23 18:00:11.147089+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:11.030549Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20990-c123-71ca-af16-4094eadcbe76', 10, '10', 'data', NULL, 'data', '{"amount": 12.5, "field2": "resolved", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"resolved","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:11.269954+00', '2026-11-23 18:00:11.3027+00', 'completed', 4, false, NULL, 1, '6e9e957b-e4ea-42c7-b362-a86858303161', NULL, NULL, '2026-11-23 18:00:11.323802+00', true, 0, 0, 0, false, '7d76c594-6047-41bc-a410-48809defdb0f', false, NULL, '2026-11-23 18:00:11.323802+00', NULL, 1, 0, NULL, NULL, 2195, NULL, NULL, '{"customerId":"C1","processedAt":"2026-11-23T18:00:11.549Z"}', '2026-11-23 18:00:13.609453+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:11.269954Z', false, true, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20991-15a1-71ee-a99f-a486770cbdb8', 34, '34', 'data', NULL, 'data', '{"amount": 12.5, "field2": "after the failover", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"after the failover","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:32.846384+00', '2026-11-23 18:00:32.962578+00', 'completed', 3, false, NULL, 1, '34b84c18-0386-4f04-b83a-5d959c3aa2b1', NULL, NULL, '2026-11-23 18:00:33.119461+00', false, 0, 0, 0, false, '6752cabc-be33-4c4a-b238-7d97a8d0009e', false, NULL, '2026-11-23 18:00:33.367192+00', NULL, 1, 0, NULL, NULL, 1658, NULL, NULL, '{"customerId":"C1","processedAt":"2026-11-23T18:00:33.434Z"}', '2026-11-23 18:00:35.083688+00', false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:32.846384Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL),
	('01a20991-1f90-729e-ba14-1b09d9c6cfcf', 35, '35', 'data', NULL, 'data', '{"amount": 12.5, "field2": "under way 0", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '{"customerId":"C1","data":{"field1":"value1","field2":"under way 0","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', true, false, '2026-11-23 18:00:35.417965+00', '2026-11-23 18:00:35.502467+00', 'accepted', 4, false, NULL, 1, 'cd0a2daa-6f01-49da-8ebc-1b8b921c32c9', NULL, NULL, '2026-11-23 18:00:35.54388+00', false, 0, 0, 0, false, '36664948-840c-4e88-935e-85beae45907c', false, '2c4be4c6-f2c7-4b50-ba58-272684164965', '2026-11-23 18:00:35.848068+00', '2026-11-23 18:00:39.863135+00', 2, 0, NULL, 2209, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 0, 1, 'at:6eaba458 2026-11-23T18:00:35.417965Z', false, false, false, NULL, 0, NULL, 0, NULL, NULL, NULL);
INSERT INTO outboxd.submission_event OVERRIDING SYSTEM VALUE VALUES
	(1, '01a20990-a677-73c6-a7b6-30e4d7340919', '2026-11-23 18:00:04.810596+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(2, '01a20990-a685-740b-8030-c2d2819cbcfe', '2026-11-23 18:00:04.810668+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(3, '01a20990-a686-73be-965b-a1da93f7021c', '2026-11-23 18:00:04.810671+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(4, '01a20990-a686-73be-965b-a7788846da0a', '2026-11-23 18:00:04.810673+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(5, '01a20990-a686-73be-965b-a87adc7e66aa', '2026-11-23 18:00:04.810675+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(6, '01a20990-a686-73be-965b-ac719139ea71', '2026-11-23 18:00:04.810676+00', NULL, 'rejected', 0, 'did not map', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(7, '01a20990-a686-73be-965b-b354c4a6df9e', '2026-11-23 18:00:04.810678+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(8, '01a20990-a687-761f-97f5-efdf597f5cd4', '2026-11-23 18:00:04.81068+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(9, '01a20990-a677-73c6-a7b6-30e4d7340919', '2026-11-23 18:00:05.296206+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(10, '01a20990-a685-740b-8030-c2d2819cbcfe', '2026-11-23 18:00:05.296234+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(11, '01a20990-a686-73be-965b-a1da93f7021c', '2026-11-23 18:00:05.296236+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(12, '01a20990-a686-73be-965b-a7788846da0a', '2026-11-23 18:00:05.296238+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(13, '01a20990-a686-73be-965b-a87adc7e66aa', '2026-11-23 18:00:05.296239+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(14, '01a20990-a686-73be-965b-b354c4a6df9e', '2026-11-23 18:00:05.296243+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(15, '01a20990-a687-761f-97f5-efdf597f5cd4', '2026-11-23 18:00:05.296245+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(16, '01a20990-a686-73be-965b-a87adc7e66aa', '2026-11-23 18:00:05.672536+00', 'sending', 'rejected', 1, 'the service answered 400 E001: Invalid customer: UNKNOWN1 was not found.', 'daemon adeebb54', '{"code": "E001", "error": "the service answered 400 E001: Invalid customer: UNKNOWN1 was not found."}', NULL, NULL, NULL),
	(17, '01a20990-a677-73c6-a7b6-30e4d7340919', '2026-11-23 18:00:05.726472+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "85a91a99-bbf1-4cf5-9cc0-a85bc23a41cc"}', NULL, NULL, NULL),
	(18, '01a20990-a687-761f-97f5-efdf597f5cd4', '2026-11-23 18:00:05.726503+00', 'sending', 'rejected', 1, 'the service answered 400 E001: Invalid customer: UNKNOWN2 was not found.', 'daemon adeebb54', '{"code": "E001", "error": "the service answered 400 E001: Invalid customer: UNKNOWN2 was not found."}', NULL, NULL, NULL),
	(19, '01a20990-a686-73be-965b-b354c4a6df9e', '2026-11-23 18:00:05.726508+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "ab089ce7-5a5f-48d3-b80a-fe04293f3b00"}', NULL, NULL, NULL),
	(20, '01a20990-a686-73be-965b-a7788846da0a', '2026-11-23 18:00:05.726511+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "d7f9d79c-f6fc-4464-a05b-70a8d2d032fc"}', NULL, NULL, NULL),
	(21, '01a20990-a685-740b-8030-c2d2819cbcfe', '2026-11-23 18:00:05.726514+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "f5db35eb-d3ad-475a-a880-f635ce270e03"}', NULL, NULL, NULL),
	(22, '01a20990-a686-73be-965b-a1da93f7021c', '2026-11-23 18:00:05.726517+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "05f56d40-0849-46a4-998f-714f1e65f499"}', NULL, NULL, NULL),
	(23, '01a20990-a686-73be-965b-a1da93f7021c', '2026-11-23 18:00:09.114674+00', 'accepted', 'completed', 1, 'completed', 'daemon adeebb54', '{"transactionId": "05f56d40-0849-46a4-998f-714f1e65f499"}', NULL, NULL, NULL),
	(24, '01a20990-a677-73c6-a7b6-30e4d7340919', '2026-11-23 18:00:09.748807+00', 'accepted', 'completed', 1, 'completed', 'daemon adeebb54', '{"transactionId": "85a91a99-bbf1-4cf5-9cc0-a85bc23a41cc"}', NULL, NULL, NULL),
	(25, '01a20990-a686-73be-965b-a7788846da0a', '2026-11-23 18:00:09.83869+00', 'accepted', 'completed', 1, 'completed', 'daemon adeebb54', '{"transactionId": "d7f9d79c-f6fc-4464-a05b-70a8d2d032fc"}', NULL, NULL, NULL),
	(26, '01a20990-a686-73be-965b-b354c4a6df9e', '2026-11-23 18:00:09.888514+00', 'accepted', 'failed', 1, 'the service processed it: failed with E001', 'daemon adeebb54', '{"code": "E001", "error": "the service processed it: failed with E001", "transactionId": "ab089ce7-5a5f-48d3-b80a-fe04293f3b00"}', NULL, NULL, NULL),
	(27, '01a20990-a685-740b-8030-c2d2819cbcfe', '2026-11-23 18:00:09.88854+00', 'accepted', 'completed', 1, 'completed', 'daemon adeebb54', '{"transactionId": "f5db35eb-d3ad-475a-a880-f635ce270e03"}', NULL, NULL, NULL),
	(28, '01a20990-a687-761f-97f5-efdf597f5cd4', '2026-11-23 18:00:10.863968+00', 'rejected', 'discarded', 1, 'discarded: entered twice', 'operator root', '{"reason": "entered twice", "account": "root@vm"}', NULL, NULL, NULL),
	(29, '01a20990-c03e-757e-ab1e-ca718d287082', '2026-11-23 18:00:11.074072+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(30, '01a20990-c03e-757e-ab1e-ca718d287082', '2026-11-23 18:00:11.099559+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(31, '01a20990-c03e-757e-ab1e-ca718d287082', '2026-11-23 18:00:11.147257+00', 'sending', 'uncertain', 1, 'the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived', 'daemon adeebb54', '{"claim": "7f227f11-bd0c-491c-a579-5f4ebb9fc7d0", "error": "the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived"}', NULL, NULL, NULL),
	(32, '01a20990-c123-71ca-af16-4094eadcbe76', '2026-11-23 18:00:11.302848+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(33, '01a20990-c123-71ca-af16-4094eadcbe76', '2026-11-23 18:00:11.324338+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(34, '01a20990-c123-71ca-af16-4094eadcbe76', '2026-11-23 18:00:11.366876+00', 'sending', 'uncertain', 1, 'the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived', 'daemon adeebb54', '{"claim": "be664ae8-6482-43e0-886a-6d7c06575d61", "error": "the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived"}', NULL, NULL, NULL),
	(35, '01a20990-c123-71ca-af16-4094eadcbe76', '2026-11-23 18:00:13.217304+00', 'uncertain', 'accepted', 1, 'resolved: arrived as 7d76c594-6047-41bc-a410-48809defdb0f', 'operator root', '{"former": {"error": "the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived"}, "account": "root@vm", "transactionId": "7d76c594-6047-41bc-a410-48809defdb0f"}', NULL, NULL, NULL),
	(36, '01a20990-c123-71ca-af16-4094eadcbe76', '2026-11-23 18:00:13.609633+00', 'accepted', 'completed', 1, 'completed', 'daemon adeebb54', '{"transactionId": "7d76c594-6047-41bc-a410-48809defdb0f"}', NULL, NULL, NULL),
	(67, '01a20991-15a1-71ee-a99f-a486770cbdb8', '2026-11-23 18:00:32.962837+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(68, '01a20991-15a1-71ee-a99f-a486770cbdb8', '2026-11-23 18:00:33.119663+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(69, '01a20991-15a1-71ee-a99f-a486770cbdb8', '2026-11-23 18:00:33.370942+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "6752cabc-be33-4c4a-b238-7d97a8d0009e"}', NULL, NULL, NULL),
	(70, '01a20991-15a1-71ee-a99f-a486770cbdb8', '2026-11-23 18:00:35.083847+00', 'accepted', 'completed', 1, 'completed', 'daemon adeebb54', '{"transactionId": "6752cabc-be33-4c4a-b238-7d97a8d0009e"}', NULL, NULL, NULL),
	(71, '01a20991-1f90-729e-ba14-1b09d9c6cfcf', '2026-11-23 18:00:35.502723+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(72, '01a20991-1f91-7307-9c7e-6423309fc30d', '2026-11-23 18:00:35.502747+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(73, '01a20991-1f91-7307-9c7e-6b29e1f83acb', '2026-11-23 18:00:35.50275+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(74, '01a20991-1f90-729e-ba14-1b09d9c6cfcf', '2026-11-23 18:00:35.544136+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(75, '01a20991-1f91-7307-9c7e-6423309fc30d', '2026-11-23 18:00:35.544153+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(76, '01a20991-1f91-7307-9c7e-6b29e1f83acb', '2026-11-23 18:00:35.544156+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(77, '01a20991-1f90-729e-ba14-1b09d9c6cfcf', '2026-11-23 18:00:35.848224+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "36664948-840c-4e88-935e-85beae45907c"}', NULL, NULL, NULL),
	(80, '01a20991-2311-7687-9772-fa29ac275ef3', '2026-11-23 18:00:36.375854+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(78, '01a20991-1f91-7307-9c7e-6b29e1f83acb', '2026-11-23 18:00:35.968042+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "0de4ba55-5a59-4668-be90-49387564620b"}', NULL, NULL, NULL),
	(79, '01a20991-1f91-7307-9c7e-6423309fc30d', '2026-11-23 18:00:35.968236+00', 'sending', 'accepted', 1, 'accepted', 'daemon adeebb54', '{"transactionId": "14453e0e-1035-44e5-9864-478bd258341f"}', NULL, NULL, NULL),
	(81, '01a20991-2311-7687-9772-fa29ac275ef3', '2026-11-23 18:00:36.430962+00', 'queued', 'sending', 1, 'slot', 'daemon adeebb54', NULL, NULL, NULL, NULL),
	(82, '01a20991-2cc7-7198-9e4e-db5d33d3ed8b', '2026-11-23 18:00:38.866099+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(83, '01a20991-2cc7-7198-9e4e-df8437d0b6bb', '2026-11-23 18:00:38.866122+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL),
	(84, '01a20991-2d44-7081-96d2-a373842d40f8', '2026-11-23 18:00:38.993584+00', NULL, 'queued', 0, 'captured', 'daemon adeebb54', NULL, '{"total_amount": "12.50"}', NULL, NULL);
INSERT INTO pgboss.job_common VALUES
	('aeb88305-c002-43b9-8bbc-57f982e8e010', 'outboxd_poll', 0, '{"submissionId": "01a20990-a686-73be-965b-a1da93f7021c"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:09.006699+00', '2026-11-23 18:00:05.706817+00', '2026-11-23 18:00:09.038858+00', '2026-11-23 18:00:09.100804+00', '2036-11-20 18:00:09.006699+00', NULL, NULL, 'standard', '2026-11-23 18:00:09.038858+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('61b58cfe-c9c9-4fbe-bd4b-2a2165a15670', 'outboxd_poll', 0, '{"submissionId": "01a20990-a677-73c6-a7b6-30e4d7340919"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:09.636089+00', '2026-11-23 18:00:05.706817+00', '2026-11-23 18:00:09.663008+00', '2026-11-23 18:00:09.741815+00', '2036-11-20 18:00:09.636089+00', NULL, NULL, 'standard', '2026-11-23 18:00:09.663008+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('751224d8-3810-483c-878d-2cecaf00aa57', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f91-7307-9c7e-6b29e1f83acb"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:37.103512+00', '2026-11-23 18:00:35.945758+00', '2026-11-23 18:00:37.238258+00', '2026-11-23 18:00:37.462565+00', '2036-11-20 18:00:37.103512+00', NULL, NULL, 'standard', '2026-11-23 18:00:37.238258+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('cc961749-e7c2-4380-a26a-c41b6eacb110', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f91-7307-9c7e-6423309fc30d"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:37.246403+00', '2026-11-23 18:00:35.945758+00', '2026-11-23 18:00:37.310205+00', '2026-11-23 18:00:37.586567+00', '2036-11-20 18:00:37.246403+00', NULL, NULL, 'standard', '2026-11-23 18:00:37.310205+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('c6783b36-5e1e-4b95-b1d9-4e529c991db3', 'outboxd_poll', 0, '{"submissionId": "01a20990-a686-73be-965b-a7788846da0a"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:09.636089+00', '2026-11-23 18:00:05.706817+00', '2026-11-23 18:00:09.71312+00', '2026-11-23 18:00:09.803963+00', '2036-11-20 18:00:09.636089+00', NULL, NULL, 'standard', '2026-11-23 18:00:09.81753+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('30c8d0d3-aa01-4ed6-8c0d-128bfb7d8f58', 'outboxd_poll', 0, '{"submissionId": "01a20990-a686-73be-965b-b354c4a6df9e"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:09.636089+00', '2026-11-23 18:00:05.706817+00', '2026-11-23 18:00:09.71312+00', '2026-11-23 18:00:09.869563+00', '2036-11-20 18:00:09.636089+00', NULL, NULL, 'standard', '2026-11-23 18:00:09.81753+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('e8a23b7b-db52-4350-8101-7e2d4b054424', 'outboxd_poll', 0, '{"submissionId": "01a20990-a685-740b-8030-c2d2819cbcfe"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:09.636089+00', '2026-11-23 18:00:05.706817+00', '2026-11-23 18:00:09.71312+00', '2026-11-23 18:00:09.869563+00', '2036-11-20 18:00:09.636089+00', NULL, NULL, 'standard', '2026-11-23 18:00:09.81753+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('cab07d04-1bc7-4e6c-a160-5ca5efd34814', 'outboxd_poll', 0, '{"submissionId": "01a20990-c123-71ca-af16-4094eadcbe76"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:13.206796+00', '2026-11-23 18:00:13.206796+00', '2026-11-23 18:00:13.424372+00', '2026-11-23 18:00:13.589985+00', '2036-11-20 18:00:13.206796+00', NULL, NULL, 'standard', '2026-11-23 18:00:13.424372+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('0f3f9914-0cdf-4164-b13e-c0471d952424', 'outboxd_poll', 0, '{"submissionId": "01a20991-15a1-71ee-a99f-a486770cbdb8"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:34.859306+00', '2026-11-23 18:00:33.310588+00', '2026-11-23 18:00:34.938756+00', '2026-11-23 18:00:35.069972+00', '2036-11-20 18:00:34.859306+00', NULL, NULL, 'standard', '2026-11-23 18:00:34.938756+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('8e4bc67b-0656-43c5-ac16-02070acc7a7a', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f90-729e-ba14-1b09d9c6cfcf"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:36.992308+00', '2026-11-23 18:00:35.691663+00', '2026-11-23 18:00:37.154016+00', '2026-11-23 18:00:37.378029+00', '2036-11-20 18:00:36.992308+00', NULL, NULL, 'standard', '2026-11-23 18:00:37.154016+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('80e7cbcc-719d-4e9c-aa46-ba80278d0fbc', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f90-729e-ba14-1b09d9c6cfcf"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:37.841539+00', '2026-11-23 18:00:37.378029+00', '2026-11-23 18:00:37.927918+00', '2026-11-23 18:00:38.107422+00', '2036-11-20 18:00:37.841539+00', NULL, NULL, 'standard', '2026-11-23 18:00:37.927918+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('2c4be4c6-f2c7-4b50-ba58-272684164965', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f90-729e-ba14-1b09d9c6cfcf"}', 'created', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:39.851514+00', '2026-11-23 18:00:38.107422+00', NULL, NULL, '2036-11-20 18:00:39.851514+00', NULL, NULL, 'standard', NULL, 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('e5542fa7-7f73-4f05-833c-037507dcdd2d', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f91-7307-9c7e-6b29e1f83acb"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:37.904608+00', '2026-11-23 18:00:37.462565+00', '2026-11-23 18:00:38.105809+00', '2026-11-23 18:00:38.131923+00', '2036-11-20 18:00:37.904608+00', NULL, NULL, 'standard', '2026-11-23 18:00:38.105809+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('16ecdfb8-3a64-44c4-abe4-bef53e76fb2e', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f91-7307-9c7e-6b29e1f83acb"}', 'created', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:39.692074+00', '2026-11-23 18:00:38.131923+00', NULL, NULL, '2036-11-20 18:00:39.692074+00', NULL, NULL, 'standard', NULL, 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('6c810861-4de4-42ce-b240-e371e7f7d7dd', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f91-7307-9c7e-6423309fc30d"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:38.195703+00', '2026-11-23 18:00:37.586567+00', '2026-11-23 18:00:38.294532+00', '2026-11-23 18:00:38.567022+00', '2036-11-20 18:00:38.195703+00', NULL, NULL, 'standard', '2026-11-23 18:00:38.294532+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('cef7aa8d-a95a-42b1-8402-1d600b49aa5c', 'outboxd_poll', 0, '{"submissionId": "01a20991-1f91-7307-9c7e-6423309fc30d"}', 'created', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-23 18:00:40.072167+00', '2026-11-23 18:00:38.567022+00', NULL, NULL, '2036-11-20 18:00:40.072167+00', NULL, NULL, 'standard', NULL, 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO pgboss.queue VALUES
	('outboxd_poll', 'standard', 1000000, 0, false, NULL, 3600, 315360000, 3600, NULL, false, 'job_common', 1, 1, 0, 0, 0, 0, 7, 0, 0, 0, NULL, NULL, '{0,0}', 10, false, NULL, '2026-11-23 18:00:34.527535+00', '2026-11-23 18:00:34.553477+00', '2026-11-23 18:00:04.177486+00', '2026-11-23 17:59:54.196731+00', '2026-11-23 17:59:54.196731+00');
INSERT INTO pgboss.version VALUES
	(43, NULL, '2026-11-23 17:59:54.2126+00', NULL, '2026-11-23 18:00:04.262301+00', NULL);
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES
	(6, 'data', NULL, '{"amount": 1.005, "field2": "cents", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 17:59:58.658001+00', 'rejected', NULL, NULL, 'total_amount (from amount) has 3 decimals, decimal(10,2) takes 2: "1.005"', '2026-11-23 18:00:04.866629+00'),
	(5, 'data', NULL, '{"amount": 12.5, "field2": "unknown", "orderDate": "2026-11-21T10:00:00Z", "customerId": "UNKNOWN1"}', '2026-11-23 17:59:58.600592+00', 'rejected', NULL, 'E001', 'the service answered 400 E001: Invalid customer: UNKNOWN1 was not found.', '2026-11-23 18:00:05.789446+00'),
	(3, 'data', NULL, '{"amount": 12.5, "field2": "done 2", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 17:59:58.564692+00', 'completed', '05f56d40-0849-46a4-998f-714f1e65f499', NULL, NULL, '2026-11-23 18:00:09.201765+00'),
	(1, 'data', NULL, '{"amount": 12.5, "field2": "done 0", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 17:59:58.486536+00', 'completed', '85a91a99-bbf1-4cf5-9cc0-a85bc23a41cc', NULL, NULL, '2026-11-23 18:00:09.864939+00'),
	(2, 'data', NULL, '{"amount": 12.5, "field2": "done 1", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 17:59:58.550737+00', 'completed', 'f5db35eb-d3ad-475a-a880-f635ce270e03', NULL, NULL, '2026-11-23 18:00:09.936967+00'),
	(4, 'data', 'k', '{"amount": 12.5, "field2": "by key", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 17:59:58.592916+00', 'completed', 'd7f9d79c-f6fc-4464-a05b-70a8d2d032fc', NULL, NULL, '2026-11-23 18:00:09.936992+00'),
	(7, 'data', NULL, '{"amount": 12.5, "field2": "fail:E001", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 17:59:58.712323+00', 'failed', 'ab089ce7-5a5f-48d3-b80a-fe04293f3b00', 'E001', 'the service processed it: failed with E001', '2026-11-23 18:00:09.936997+00'),
	(8, 'data', NULL, '{"amount": 12.5, "field2": "given up", "orderDate": "2026-11-21T10:00:00Z", "customerId": "UNKNOWN2"}', '2026-11-23 17:59:58.743961+00', 'discarded', NULL, 'E001', 'the service answered 400 E001: Invalid customer: UNKNOWN2 was not found.', '2026-11-23 18:00:11.227802+00'),
	(9, 'data', NULL, '{"amount": 12.5, "field2": "no answer", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:11.030549+00', 'uncertain', NULL, NULL, 'the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived', '2026-11-23 18:00:11.227829+00'),
	(10, 'data', NULL, '{"amount": 12.5, "field2": "resolved", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:11.269954+00', 'completed', '7d76c594-6047-41bc-a410-48809defdb0f', NULL, NULL, '2026-11-23 18:00:13.728536+00'),
	(34, 'data', NULL, '{"amount": 12.5, "field2": "after the failover", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:32.846384+00', 'completed', '6752cabc-be33-4c4a-b238-7d97a8d0009e', NULL, NULL, '2026-11-23 18:00:35.183323+00'),
	(35, 'data', NULL, '{"amount": 12.5, "field2": "under way 0", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:35.417965+00', 'accepted', '36664948-840c-4e88-935e-85beae45907c', NULL, NULL, '2026-11-23 18:00:36.054369+00'),
	(36, 'data', NULL, '{"amount": 12.5, "field2": "under way 1", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:35.418993+00', 'accepted', '14453e0e-1035-44e5-9864-478bd258341f', NULL, NULL, '2026-11-23 18:00:36.173854+00'),
	(37, 'data', NULL, '{"amount": 12.5, "field2": "under way 2", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:35.419534+00', 'accepted', '0de4ba55-5a59-4668-be90-49387564620b', NULL, NULL, '2026-11-23 18:00:36.17388+00'),
	(38, 'data', NULL, '{"amount": 12.5, "field2": "on the wire", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:36.244834+00', 'queued', NULL, NULL, NULL, '2026-11-23 18:00:36.403863+00'),
	(39, 'data', NULL, '{"amount": 12.5, "field2": "waits 0", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:38.765493+00', 'queued', NULL, NULL, NULL, '2026-11-23 18:00:38.884456+00'),
	(40, 'data', NULL, '{"amount": 12.5, "field2": "waits 1", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:38.773963+00', 'queued', NULL, NULL, NULL, '2026-11-23 18:00:38.884486+00'),
	(41, 'data', NULL, '{"amount": 12.5, "field2": "behind", "orderDate": "2026-11-21T10:00:00Z", "customerId": "UNKNOWN3"}', '2026-11-23 18:00:38.909416+00', 'queued', NULL, NULL, NULL, '2026-11-23 18:00:39.011413+00'),
	(42, 'data', NULL, '{"amount": 12.5, "field2": "not captured", "orderDate": "2026-11-21T10:00:00Z", "customerId": "C1"}', '2026-11-23 18:00:39.221405+00', 'new', NULL, NULL, NULL, NULL);
SELECT pg_catalog.setval('outboxd.migration_id_seq', 27, true);
SELECT pg_catalog.setval('outboxd.operator_act_id_seq', 1, true);
SELECT pg_catalog.setval('outboxd.outbox_id_seq', 1, true);
SELECT pg_catalog.setval('outboxd.submission_event_id_seq', 84, true);
SELECT pg_catalog.setval('outboxd.submission_seq_seq', 41, true);
SELECT pg_catalog.setval('public.outbox_id_seq', 42, true);
ALTER TABLE ONLY outboxd.believed_refusal
    ADD CONSTRAINT believed_refusal_pkey PRIMARY KEY (fingerprint);
ALTER TABLE ONLY outboxd.budget
    ADD CONSTRAINT budget_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.chain_block
    ADD CONSTRAINT chain_block_pkey PRIMARY KEY (number);
ALTER TABLE ONLY outboxd.clock
    ADD CONSTRAINT clock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.instance_setting
    ADD CONSTRAINT instance_setting_pkey PRIMARY KEY (instance_id);
ALTER TABLE ONLY outboxd.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.operator_act
    ADD CONSTRAINT operator_act_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.outbox_cursor
    ADD CONSTRAINT outbox_cursor_pkey PRIMARY KEY (epoch, outbox);
ALTER TABLE ONLY outboxd.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.passage
    ADD CONSTRAINT passage_pkey PRIMARY KEY (resource, met);
ALTER TABLE ONLY outboxd.pause
    ADD CONSTRAINT pause_pkey PRIMARY KEY (reason);
ALTER TABLE ONLY outboxd.period
    ADD CONSTRAINT period_pkey PRIMARY KEY (span, began_at);
ALTER TABLE ONLY outboxd.problem
    ADD CONSTRAINT problem_pkey PRIMARY KEY (kind, subject);
ALTER TABLE ONLY outboxd.pruned_submission
    ADD CONSTRAINT pruned_submission_pkey PRIMARY KEY (outbox_id, outbox);
ALTER TABLE ONLY outboxd.refusal_run
    ADD CONSTRAINT refusal_run_pkey PRIMARY KEY (resource);
ALTER TABLE ONLY outboxd.request_count
    ADD CONSTRAINT request_count_pkey PRIMARY KEY (minute, kind, instance_id);
ALTER TABLE ONLY outboxd.request_hour
    ADD CONSTRAINT request_hour_pkey PRIMARY KEY (hour, kind);
ALTER TABLE ONLY outboxd.slot
    ADD CONSTRAINT slot_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.submission_event
    ADD CONSTRAINT submission_event_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.submission
    ADD CONSTRAINT submission_outbox_row UNIQUE (outbox_id, outbox);
ALTER TABLE ONLY outboxd.submission
    ADD CONSTRAINT submission_pkey PRIMARY KEY (id);
ALTER TABLE ONLY pgboss.bam
    ADD CONSTRAINT bam_pkey PRIMARY KEY (id);
ALTER TABLE ONLY pgboss.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (name, id);
ALTER TABLE ONLY pgboss.job_common
    ADD CONSTRAINT job_common_pkey PRIMARY KEY (name, id);
ALTER TABLE ONLY pgboss.job_dependency
    ADD CONSTRAINT job_dependency_pkey PRIMARY KEY (child_name, child_id, parent_name, parent_id);
ALTER TABLE ONLY pgboss.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (name);
ALTER TABLE ONLY pgboss.queue_stats
    ADD CONSTRAINT queue_stats_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY pgboss.queue_stats_20261123
    ADD CONSTRAINT queue_stats_20261123_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY pgboss.queue_stats_20261124
    ADD CONSTRAINT queue_stats_20261124_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY pgboss.schedule
    ADD CONSTRAINT schedule_pkey PRIMARY KEY (name, key);
ALTER TABLE ONLY pgboss.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (event, name);
ALTER TABLE ONLY pgboss.version
    ADD CONSTRAINT version_pkey PRIMARY KEY (version);
ALTER TABLE ONLY pgboss.warning
    ADD CONSTRAINT warning_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
CREATE INDEX chain_block_look ON outboxd.chain_block USING btree (look_at) WHERE (look_at IS NOT NULL);
CREATE UNIQUE INDEX outbox_current ON outboxd.outbox USING btree (is_current) WHERE is_current;
CREATE INDEX pruned_submission_look ON outboxd.pruned_submission USING btree (look_at);
CREATE UNIQUE INDEX skipped_row_id ON outboxd.skipped_row USING btree (hashtextextended(outbox_id, (0)::bigint), outbox);
CREATE INDEX submission_code ON outboxd.submission USING btree (lower(error_code)) WHERE (error_code IS NOT NULL);
CREATE INDEX submission_done ON outboxd.submission USING btree (ended_at) WHERE ((ended_at IS NOT NULL) AND (done_ms IS NOT NULL));
CREATE INDEX submission_emptiable ON outboxd.submission USING btree (ended_at) WHERE ((state = ANY (ARRAY['completed'::text, 'discarded'::text])) AND (NOT report_due) AND (NOT id_by_person) AND (emptied_at IS NULL));
CREATE INDEX submission_event_person ON outboxd.submission_event USING btree (id) WHERE (who ~~ 'operator%'::text);
CREATE INDEX submission_event_submission ON outboxd.submission_event USING btree (submission_id, id);
CREATE INDEX submission_idempotency_key ON outboxd.submission USING btree (idempotency_key);
CREATE INDEX submission_key ON outboxd.submission USING btree (hashtextextended(key, (0)::bigint)) WHERE (key IS NOT NULL);
CREATE INDEX submission_last_digits ON outboxd.submission USING btree ("right"((id)::text, 6));
CREATE INDEX submission_line ON outboxd.submission USING btree (key, seq) WHERE ((key IS NOT NULL) AND (state = ANY (ARRAY['queued'::text, 'sending'::text, 'uncertain'::text, 'failed'::text, 'rejected'::text])));
CREATE INDEX submission_person ON outboxd.submission USING btree (ended_at, seq) WHERE (state = ANY (ARRAY['failed'::text, 'rejected'::text, 'uncertain'::text]));
CREATE INDEX submission_polled ON outboxd.submission USING btree (polled_rarely, poll_at) WHERE (job_id IS NOT NULL);
CREATE INDEX submission_prunable ON outboxd.submission USING btree (ended_at) WHERE ((state = ANY (ARRAY['completed'::text, 'discarded'::text])) AND (NOT report_due));
CREATE INDEX submission_ready ON outboxd.submission USING btree (due_at, seq) WHERE ((state = 'queued'::text) AND (NOT held));
CREATE INDEX submission_report ON outboxd.submission USING btree (seq) WHERE (report_due AND (report_put_off IS DISTINCT FROM revision));
CREATE INDEX submission_report_again ON outboxd.submission USING btree (report_not_before) WHERE (report_due AND (report_put_off = revision));
CREATE INDEX submission_sending ON outboxd.submission USING btree (instance_id) WHERE (state = 'sending'::text);
CREATE INDEX submission_state ON outboxd.submission USING btree (state, ended_at, seq) WHERE (ended_at IS NOT NULL);
CREATE INDEX submission_transaction ON outboxd.submission USING btree (transaction_id, resource) WHERE (transaction_id IS NOT NULL);
CREATE INDEX submission_type ON outboxd.submission USING btree (state, hashtextextended(type, (0)::bigint), ended_at, seq) WHERE (ended_at IS NOT NULL);
CREATE INDEX submission_under_way ON outboxd.submission USING btree (state) WHERE (ended_at IS NULL);
CREATE INDEX submission_unsent ON outboxd.submission USING btree (recorded_at) WHERE (state = ANY (ARRAY['queued'::text, 'sending'::text]));
CREATE UNIQUE INDEX job_common_i1 ON pgboss.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state = 'created'::pgboss.job_state) AND (policy = 'short'::text));
CREATE INDEX job_common_i10 ON pgboss.job_common USING btree (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE ((state < 'active'::pgboss.job_state) AND (NOT blocked) AND (policy = 'key_strict_fifo'::text));
CREATE INDEX job_common_i11 ON pgboss.job_common USING btree (name, priority DESC, created_on, start_after) WHERE ((state < 'active'::pgboss.job_state) AND (NOT blocked));
CREATE INDEX job_common_i12 ON pgboss.job_common USING btree (source_root_id) WHERE (source_root_id IS NOT NULL);
CREATE UNIQUE INDEX job_common_i2 ON pgboss.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state = 'active'::pgboss.job_state) AND (policy = 'singleton'::text));
CREATE UNIQUE INDEX job_common_i3 ON pgboss.job_common USING btree (name, state, COALESCE(singleton_key, ''::text)) WHERE ((state <= 'active'::pgboss.job_state) AND (policy = 'stately'::text));
CREATE UNIQUE INDEX job_common_i4 ON pgboss.job_common USING btree (name, singleton_on, COALESCE(singleton_key, ''::text)) WHERE ((state <> 'cancelled'::pgboss.job_state) AND (singleton_on IS NOT NULL));
CREATE UNIQUE INDEX job_common_i6 ON pgboss.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state <= 'active'::pgboss.job_state) AND (policy = 'exclusive'::text));
CREATE INDEX job_common_i7 ON pgboss.job_common USING btree (name, group_id) WHERE ((state = 'active'::pgboss.job_state) AND (group_id IS NOT NULL));
CREATE UNIQUE INDEX job_common_i8 ON pgboss.job_common USING btree (name, singleton_key) WHERE ((state = ANY (ARRAY['active'::pgboss.job_state, 'retry'::pgboss.job_state, 'failed'::pgboss.job_state])) AND (policy = 'key_strict_fifo'::text));
CREATE INDEX job_common_i9 ON pgboss.job_common USING btree (name, id) WHERE (blocking AND (state = 'completed'::pgboss.job_state));
CREATE INDEX job_dep_parent_idx ON pgboss.job_dependency USING btree (parent_name, parent_id);
CREATE INDEX queue_stats_i1 ON ONLY pgboss.queue_stats USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX queue_stats_20261123_name_captured_on_deferred_count_queued_idx ON pgboss.queue_stats_20261123 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX queue_stats_20261124_name_captured_on_deferred_count_queued_idx ON pgboss.queue_stats_20261124 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX warning_i1 ON pgboss.warning USING btree (created_on DESC);
CREATE INDEX outbox_new ON public.outbox USING btree (id) WHERE (status = 'new'::text);
ALTER INDEX pgboss.job_pkey ATTACH PARTITION pgboss.job_common_pkey;
ALTER INDEX pgboss.queue_stats_i1 ATTACH PARTITION pgboss.queue_stats_20261123_name_captured_on_deferred_count_queued_idx;
ALTER INDEX pgboss.queue_stats_pkey ATTACH PARTITION pgboss.queue_stats_20261123_pkey;
ALTER INDEX pgboss.queue_stats_i1 ATTACH PARTITION pgboss.queue_stats_20261124_name_captured_on_deferred_count_queued_idx;
ALTER INDEX pgboss.queue_stats_pkey ATTACH PARTITION pgboss.queue_stats_20261124_pkey;
CREATE STATISTICS outboxd.submission_code_rarity ON lower(error_code) FROM outboxd.submission;
CREATE STATISTICS outboxd.submission_key_rarity ON hashtextextended(key, 0::bigint) FROM outboxd.submission;
CREATE STATISTICS outboxd.submission_type_rarity ON hashtextextended(type, 0::bigint) FROM outboxd.submission;
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON outboxd.chain_block FOR EACH ROW EXECUTE FUNCTION outboxd.refuse_change_of_chain();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON outboxd.operator_act FOR EACH ROW EXECUTE FUNCTION outboxd.refuse_change_of_act();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON outboxd.submission_event FOR EACH ROW EXECUTE FUNCTION outboxd.refuse_change();
CREATE TRIGGER count_deleted AFTER DELETE ON outboxd.submission REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION outboxd.count_deleted();
CREATE TRIGGER count_inserted AFTER INSERT ON outboxd.submission REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION outboxd.count_inserted();
CREATE TRIGGER count_updated AFTER UPDATE ON outboxd.submission REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION outboxd.count_updated();
CREATE TRIGGER note_set_at BEFORE INSERT OR UPDATE OF until, probe_until ON outboxd.pause FOR EACH ROW EXECUTE FUNCTION outboxd.note_set_at();
CREATE TRIGGER note_writer BEFORE UPDATE ON outboxd.history FOR EACH ROW EXECUTE FUNCTION outboxd.note_writer();
CREATE TRIGGER only_ended BEFORE DELETE ON outboxd.submission FOR EACH ROW EXECUTE FUNCTION outboxd.refuse_delete();
CREATE TRIGGER outbox_wakes_outboxd AFTER INSERT ON public.outbox FOR EACH STATEMENT EXECUTE FUNCTION public.outboxd_wake();
ALTER TABLE ONLY outboxd.outbox_cursor
    ADD CONSTRAINT outbox_cursor_epoch_fkey FOREIGN KEY (epoch) REFERENCES outboxd.outbox(id);
ALTER TABLE ONLY outboxd.pruned_submission
    ADD CONSTRAINT pruned_submission_outbox_fkey FOREIGN KEY (outbox) REFERENCES outboxd.outbox(id);
ALTER TABLE ONLY outboxd.skipped_row
    ADD CONSTRAINT skipped_row_outbox_fkey FOREIGN KEY (outbox) REFERENCES outboxd.outbox(id);
ALTER TABLE ONLY outboxd.submission_event
    ADD CONSTRAINT submission_event_submission_id_fkey FOREIGN KEY (submission_id) REFERENCES outboxd.submission(id) ON DELETE CASCADE NOT VALID;
ALTER TABLE ONLY outboxd.submission
    ADD CONSTRAINT submission_outbox_fkey FOREIGN KEY (outbox) REFERENCES outboxd.outbox(id);
ALTER TABLE ONLY pgboss.job_common
    ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES pgboss.queue(name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY pgboss.job_common
    ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES pgboss.queue(name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY pgboss.queue
    ADD CONSTRAINT queue_dead_letter_fkey FOREIGN KEY (dead_letter) REFERENCES pgboss.queue(name);
ALTER TABLE ONLY pgboss.schedule
    ADD CONSTRAINT schedule_name_fkey FOREIGN KEY (name) REFERENCES pgboss.queue(name) ON DELETE CASCADE;
ALTER TABLE ONLY pgboss.subscription
    ADD CONSTRAINT subscription_name_fkey FOREIGN KEY (name) REFERENCES pgboss.queue(name) ON DELETE CASCADE;

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
CREATE FUNCTION outboxd.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception 'the event log is append-only';
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
  perform pg_notify('outboxd_outbox', '');
  return null;
end $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE outboxd.instance (
    id uuid NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    beat_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    version text NOT NULL,
    host text NOT NULL
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
CREATE TABLE outboxd.outbox_cursor (
    outbox text NOT NULL,
    "position" text[] NOT NULL,
    advanced_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE outboxd.pause (
    reason text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    until timestamp with time zone,
    level integer DEFAULT 0 NOT NULL,
    detail text NOT NULL,
    probe_until timestamp with time zone,
    CONSTRAINT pause_check CHECK (((until IS NOT NULL) OR (reason = 'operator'::text))),
    CONSTRAINT pause_reason_check CHECK ((reason = ANY (ARRAY['throttled'::text, 'unavailable'::text, 'unauthorized'::text, 'unreachable'::text, 'operator'::text])))
);
CREATE TABLE outboxd.slot (
    id integer NOT NULL,
    permits integer NOT NULL,
    free_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    lease bigint DEFAULT 0 NOT NULL,
    taken_by uuid,
    spent_on_submissions integer DEFAULT 0 NOT NULL,
    CONSTRAINT slot_permits_check CHECK ((permits >= 0))
)
WITH (fillfactor='50');
CREATE TABLE outboxd.state_delta (
    state text NOT NULL,
    delta bigint NOT NULL
);
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
    CONSTRAINT submission_check CHECK (((state <> ALL (ARRAY['queued'::text, 'sending'::text, 'accepted'::text])) OR (body IS NOT NULL))),
    CONSTRAINT submission_check1 CHECK (((NOT held) OR (state = 'queued'::text))),
    CONSTRAINT submission_check2 CHECK (((state = 'queued'::text) = (due_at IS NOT NULL))),
    CONSTRAINT submission_check3 CHECK ((((state = 'sending'::text) AND (NOT probing)) = ((claim_id IS NOT NULL) AND (instance_id IS NOT NULL)))),
    CONSTRAINT submission_check4 CHECK (((NOT probing) OR (state = 'sending'::text))),
    CONSTRAINT submission_check5 CHECK ((((state = 'accepted'::text) OR probing) = ((job_id IS NOT NULL) AND (poll_at IS NOT NULL)))),
    CONSTRAINT submission_check6 CHECK (((state <> 'accepted'::text) OR ((transaction_id IS NOT NULL) AND (accepted_at IS NOT NULL)))),
    CONSTRAINT submission_check7 CHECK (((state = ANY (ARRAY['completed'::text, 'failed'::text, 'rejected'::text, 'uncertain'::text, 'discarded'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT submission_resource_check CHECK ((resource = ANY (ARRAY['data'::text, 'orders'::text]))),
    CONSTRAINT submission_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'sending'::text, 'accepted'::text, 'completed'::text, 'failed'::text, 'rejected'::text, 'uncertain'::text, 'discarded'::text])))
);
CREATE TABLE outboxd.submission_event (
    id bigint NOT NULL,
    submission_id uuid NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    from_state text,
    to_state text NOT NULL,
    attempt integer NOT NULL,
    cause text NOT NULL,
    who text NOT NULL,
    detail jsonb
);
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
CREATE TABLE pgboss.queue_stats_20261122 (
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
ALTER TABLE ONLY pgboss.queue_stats ATTACH PARTITION pgboss.queue_stats_20261122 FOR VALUES FROM ('2026-11-22 00:00:00+00') TO ('2026-11-23 00:00:00+00');
ALTER TABLE ONLY pgboss.queue_stats ATTACH PARTITION pgboss.queue_stats_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');
ALTER TABLE ONLY outboxd.migration ALTER COLUMN id SET DEFAULT nextval('outboxd.migration_id_seq'::regclass);
INSERT INTO outboxd.instance VALUES
	('ebfadc35-695e-4b6b-bde3-49c1a804da14', '2026-11-22 04:20:31.301977+00', '2026-11-22 04:20:34.593482+00', '0.1.0', 'vm'),
	('b98fd504-0640-4ca0-9616-4b7821b6f48c', '2026-11-22 04:20:39.866026+00', '2026-11-22 04:20:39.866026+00', '0.1.0', 'vm');
INSERT INTO outboxd.migration VALUES
	(1, '0001_ledger', '2026-11-22 04:20:26.621512'),
	(2, '0002_outbox_cursor', '2026-11-22 04:20:26.656141');
INSERT INTO outboxd.slot VALUES
	(40, 1, '-infinity', 0, NULL, 0),
	(41, 1, '-infinity', 0, NULL, 0),
	(42, 1, '-infinity', 0, NULL, 0),
	(43, 1, '-infinity', 0, NULL, 0),
	(44, 1, '-infinity', 0, NULL, 0),
	(45, 1, '-infinity', 0, NULL, 0),
	(46, 1, '-infinity', 0, NULL, 0),
	(47, 1, '-infinity', 0, NULL, 0),
	(48, 1, '-infinity', 0, NULL, 0),
	(49, 1, '-infinity', 0, NULL, 0),
	(50, 1, '-infinity', 0, NULL, 0),
	(51, 1, '-infinity', 0, NULL, 0),
	(52, 1, '-infinity', 0, NULL, 0),
	(53, 1, '-infinity', 0, NULL, 0),
	(54, 1, '-infinity', 0, NULL, 0),
	(55, 1, '-infinity', 0, NULL, 0),
	(56, 1, '-infinity', 0, NULL, 0),
	(57, 1, '-infinity', 0, NULL, 0),
	(58, 1, '-infinity', 0, NULL, 0),
	(59, 1, '-infinity', 0, NULL, 0),
	(60, 1, '-infinity', 0, NULL, 0),
	(61, 1, '-infinity', 0, NULL, 0),
	(62, 1, '-infinity', 0, NULL, 0),
	(63, 1, '-infinity', 0, NULL, 0),
	(64, 1, '-infinity', 0, NULL, 0),
	(65, 1, '-infinity', 0, NULL, 0),
	(66, 1, '-infinity', 0, NULL, 0),
	(67, 1, '-infinity', 0, NULL, 0),
	(2, 1, '2026-11-22 04:20:37.6424+00', 1, NULL, 1),
	(30, 1, '2026-11-22 04:20:42.255378+00', 1, NULL, 0),
	(1, 1, '2026-11-22 04:20:37.540842+00', 1, NULL, 0),
	(3, 1, '2026-11-22 04:20:37.922442+00', 1, NULL, 0),
	(4, 1, '2026-11-22 04:20:38.054402+00', 1, NULL, 1),
	(5, 1, '2026-11-22 04:20:38.195902+00', 1, NULL, 0),
	(6, 1, '2026-11-22 04:20:38.287421+00', 1, NULL, 0),
	(7, 1, '2026-11-22 04:20:38.435301+00', 1, NULL, 1),
	(8, 1, '2026-11-22 04:20:38.614937+00', 1, NULL, 0),
	(9, 1, '2026-11-22 04:20:38.722945+00', 1, NULL, 1),
	(10, 1, '2026-11-22 04:20:38.904292+00', 1, NULL, 0),
	(11, 1, '2026-11-22 04:20:38.935077+00', 1, NULL, 0),
	(12, 1, '2026-11-22 04:20:39.02113+00', 1, NULL, 1),
	(13, 1, '2026-11-22 04:20:39.213618+00', 1, NULL, 1),
	(14, 1, '2026-11-22 04:20:39.314601+00', 1, NULL, 0),
	(15, 1, '2026-11-22 04:20:33.325958+00', 1, NULL, 0),
	(16, 1, '2026-11-22 04:20:39.397441+00', 1, NULL, 0),
	(17, 1, '2026-11-22 04:20:39.481613+00', 1, NULL, 0),
	(18, 1, '2026-11-22 04:20:39.664472+00', 1, NULL, 1),
	(19, 1, '2026-11-22 04:20:41.396992+00', 1, NULL, 1),
	(20, 1, '2026-11-22 04:20:41.589749+00', 1, NULL, 1),
	(21, 1, '2026-11-22 04:20:41.717003+00', 1, NULL, 0),
	(22, 1, '2026-11-22 04:20:41.778927+00', 1, NULL, 0),
	(23, 1, '2026-11-22 04:20:41.874515+00', 1, NULL, 0),
	(24, 1, '2026-11-22 04:20:42.03681+00', 1, NULL, 1),
	(27, 1, '2026-11-22 04:20:42.179993+00', 1, NULL, 1),
	(25, 1, '2026-11-22 04:20:42.121995+00', 1, NULL, 1),
	(26, 1, '2026-11-22 04:20:42.154832+00', 1, NULL, 0),
	(35, 1, '2026-11-22 04:20:42.559229+00', 1, NULL, 0),
	(32, 1, '2026-11-22 04:20:42.363054+00', 1, NULL, 0),
	(28, 1, '2026-11-22 04:20:42.229355+00', 1, NULL, 0),
	(29, 1, '2026-11-22 04:20:42.275008+00', 1, NULL, 1),
	(37, 1, '2026-11-22 04:21:13.165827+00', 1, 'ebfadc35-695e-4b6b-bde3-49c1a804da14', 0),
	(31, 1, '2026-11-22 04:20:42.334465+00', 1, NULL, 0),
	(33, 1, '2026-11-22 04:20:42.363076+00', 1, NULL, 0),
	(34, 1, '2026-11-22 04:20:42.508839+00', 1, NULL, 0),
	(38, 1, '2026-11-22 04:21:13.20035+00', 1, 'ebfadc35-695e-4b6b-bde3-49c1a804da14', 0),
	(36, 1, '2026-11-22 04:20:42.583056+00', 1, NULL, 0),
	(39, 1, '2026-11-22 04:21:13.200368+00', 1, 'ebfadc35-695e-4b6b-bde3-49c1a804da14', 0),
	(68, 1, '-infinity', 0, NULL, 0),
	(69, 1, '-infinity', 0, NULL, 0),
	(70, 1, '-infinity', 0, NULL, 0),
	(71, 1, '-infinity', 0, NULL, 0),
	(72, 1, '-infinity', 0, NULL, 0),
	(73, 1, '-infinity', 0, NULL, 0),
	(74, 1, '-infinity', 0, NULL, 0),
	(75, 1, '-infinity', 0, NULL, 0),
	(76, 1, '-infinity', 0, NULL, 0),
	(77, 1, '-infinity', 0, NULL, 0),
	(78, 1, '-infinity', 0, NULL, 0),
	(79, 1, '-infinity', 0, NULL, 0),
	(80, 1, '-infinity', 0, NULL, 0),
	(81, 1, '-infinity', 0, NULL, 0),
	(82, 1, '-infinity', 0, NULL, 0),
	(83, 1, '-infinity', 0, NULL, 0),
	(84, 1, '-infinity', 0, NULL, 0),
	(85, 1, '-infinity', 0, NULL, 0),
	(86, 1, '-infinity', 0, NULL, 0),
	(87, 1, '-infinity', 0, NULL, 0),
	(88, 1, '-infinity', 0, NULL, 0),
	(89, 1, '-infinity', 0, NULL, 0),
	(90, 1, '-infinity', 0, NULL, 0),
	(91, 1, '-infinity', 0, NULL, 0),
	(92, 1, '-infinity', 0, NULL, 0),
	(93, 1, '-infinity', 0, NULL, 0),
	(94, 1, '-infinity', 0, NULL, 0),
	(95, 1, '-infinity', 0, NULL, 0),
	(96, 1, '-infinity', 0, NULL, 0),
	(97, 1, '-infinity', 0, NULL, 0),
	(98, 1, '-infinity', 0, NULL, 0),
	(99, 1, '-infinity', 0, NULL, 0),
	(100, 1, '-infinity', 0, NULL, 0);
INSERT INTO outboxd.slot VALUES
	(101, 1, '-infinity', 0, NULL, 0),
	(102, 1, '-infinity', 0, NULL, 0),
	(103, 1, '-infinity', 0, NULL, 0),
	(104, 1, '-infinity', 0, NULL, 0),
	(105, 1, '-infinity', 0, NULL, 0),
	(106, 1, '-infinity', 0, NULL, 0),
	(107, 1, '-infinity', 0, NULL, 0),
	(108, 1, '-infinity', 0, NULL, 0),
	(109, 1, '-infinity', 0, NULL, 0),
	(110, 1, '-infinity', 0, NULL, 0),
	(111, 1, '-infinity', 0, NULL, 0),
	(112, 1, '-infinity', 0, NULL, 0),
	(113, 1, '-infinity', 0, NULL, 0),
	(114, 1, '-infinity', 0, NULL, 0),
	(115, 1, '-infinity', 0, NULL, 0),
	(116, 1, '-infinity', 0, NULL, 0),
	(117, 1, '-infinity', 0, NULL, 0),
	(118, 1, '-infinity', 0, NULL, 0),
	(119, 1, '-infinity', 0, NULL, 0),
	(120, 1, '-infinity', 0, NULL, 0),
	(121, 1, '-infinity', 0, NULL, 0),
	(122, 1, '-infinity', 0, NULL, 0),
	(123, 1, '-infinity', 0, NULL, 0),
	(124, 1, '-infinity', 0, NULL, 0),
	(125, 1, '-infinity', 0, NULL, 0),
	(126, 1, '-infinity', 0, NULL, 0),
	(127, 1, '-infinity', 0, NULL, 0),
	(128, 1, '-infinity', 0, NULL, 0),
	(129, 1, '-infinity', 0, NULL, 0),
	(130, 1, '-infinity', 0, NULL, 0),
	(131, 1, '-infinity', 0, NULL, 0),
	(132, 1, '-infinity', 0, NULL, 0),
	(133, 1, '-infinity', 0, NULL, 0),
	(134, 1, '-infinity', 0, NULL, 0),
	(135, 1, '-infinity', 0, NULL, 0),
	(136, 1, '-infinity', 0, NULL, 0),
	(137, 1, '-infinity', 0, NULL, 0),
	(138, 1, '-infinity', 0, NULL, 0),
	(139, 1, '-infinity', 0, NULL, 0),
	(140, 1, '-infinity', 0, NULL, 0),
	(141, 1, '-infinity', 0, NULL, 0),
	(142, 1, '-infinity', 0, NULL, 0),
	(143, 1, '-infinity', 0, NULL, 0),
	(144, 1, '-infinity', 0, NULL, 0),
	(145, 1, '-infinity', 0, NULL, 0),
	(146, 1, '-infinity', 0, NULL, 0),
	(147, 1, '-infinity', 0, NULL, 0),
	(148, 1, '-infinity', 0, NULL, 0),
	(149, 1, '-infinity', 0, NULL, 0),
	(150, 1, '-infinity', 0, NULL, 0),
	(151, 1, '-infinity', 0, NULL, 0),
	(152, 1, '-infinity', 0, NULL, 0),
	(153, 1, '-infinity', 0, NULL, 0),
	(154, 1, '-infinity', 0, NULL, 0),
	(155, 1, '-infinity', 0, NULL, 0),
	(156, 1, '-infinity', 0, NULL, 0),
	(157, 1, '-infinity', 0, NULL, 0),
	(158, 1, '-infinity', 0, NULL, 0),
	(159, 1, '-infinity', 0, NULL, 0),
	(160, 1, '-infinity', 0, NULL, 0),
	(161, 1, '-infinity', 0, NULL, 0),
	(162, 1, '-infinity', 0, NULL, 0),
	(163, 1, '-infinity', 0, NULL, 0),
	(164, 1, '-infinity', 0, NULL, 0),
	(165, 1, '-infinity', 0, NULL, 0),
	(166, 1, '-infinity', 0, NULL, 0),
	(167, 1, '-infinity', 0, NULL, 0),
	(168, 1, '-infinity', 0, NULL, 0),
	(169, 1, '-infinity', 0, NULL, 0),
	(170, 1, '-infinity', 0, NULL, 0),
	(171, 1, '-infinity', 0, NULL, 0),
	(172, 1, '-infinity', 0, NULL, 0),
	(173, 1, '-infinity', 0, NULL, 0),
	(174, 1, '-infinity', 0, NULL, 0),
	(175, 1, '-infinity', 0, NULL, 0),
	(176, 1, '-infinity', 0, NULL, 0),
	(177, 1, '-infinity', 0, NULL, 0),
	(178, 1, '-infinity', 0, NULL, 0),
	(179, 1, '-infinity', 0, NULL, 0),
	(180, 1, '-infinity', 0, NULL, 0),
	(181, 1, '-infinity', 0, NULL, 0),
	(182, 1, '-infinity', 0, NULL, 0),
	(183, 1, '-infinity', 0, NULL, 0),
	(184, 1, '-infinity', 0, NULL, 0),
	(185, 1, '-infinity', 0, NULL, 0),
	(186, 1, '-infinity', 0, NULL, 0),
	(187, 1, '-infinity', 0, NULL, 0),
	(188, 1, '-infinity', 0, NULL, 0),
	(189, 1, '-infinity', 0, NULL, 0),
	(190, 1, '-infinity', 0, NULL, 0),
	(191, 1, '-infinity', 0, NULL, 0),
	(192, 1, '-infinity', 0, NULL, 0),
	(193, 1, '-infinity', 0, NULL, 0),
	(194, 1, '-infinity', 0, NULL, 0),
	(195, 1, '-infinity', 0, NULL, 0),
	(196, 1, '-infinity', 0, NULL, 0),
	(197, 1, '-infinity', 0, NULL, 0),
	(198, 1, '-infinity', 0, NULL, 0),
	(199, 1, '-infinity', 0, NULL, 0),
	(200, 1, '-infinity', 0, NULL, 0);
INSERT INTO outboxd.slot VALUES
	(201, 1, '-infinity', 0, NULL, 0),
	(202, 1, '-infinity', 0, NULL, 0),
	(203, 1, '-infinity', 0, NULL, 0),
	(204, 1, '-infinity', 0, NULL, 0),
	(205, 1, '-infinity', 0, NULL, 0),
	(206, 1, '-infinity', 0, NULL, 0),
	(207, 1, '-infinity', 0, NULL, 0),
	(208, 1, '-infinity', 0, NULL, 0),
	(209, 1, '-infinity', 0, NULL, 0),
	(210, 1, '-infinity', 0, NULL, 0),
	(211, 1, '-infinity', 0, NULL, 0),
	(212, 1, '-infinity', 0, NULL, 0),
	(213, 1, '-infinity', 0, NULL, 0),
	(214, 1, '-infinity', 0, NULL, 0),
	(215, 1, '-infinity', 0, NULL, 0),
	(216, 1, '-infinity', 0, NULL, 0),
	(217, 1, '-infinity', 0, NULL, 0),
	(218, 1, '-infinity', 0, NULL, 0),
	(219, 1, '-infinity', 0, NULL, 0),
	(220, 1, '-infinity', 0, NULL, 0),
	(221, 1, '-infinity', 0, NULL, 0),
	(222, 1, '-infinity', 0, NULL, 0),
	(223, 1, '-infinity', 0, NULL, 0),
	(224, 1, '-infinity', 0, NULL, 0),
	(225, 1, '-infinity', 0, NULL, 0),
	(226, 1, '-infinity', 0, NULL, 0),
	(227, 1, '-infinity', 0, NULL, 0),
	(228, 1, '-infinity', 0, NULL, 0),
	(229, 1, '-infinity', 0, NULL, 0),
	(230, 1, '-infinity', 0, NULL, 0),
	(231, 1, '-infinity', 0, NULL, 0),
	(232, 1, '-infinity', 0, NULL, 0),
	(233, 1, '-infinity', 0, NULL, 0),
	(234, 1, '-infinity', 0, NULL, 0),
	(235, 1, '-infinity', 0, NULL, 0),
	(236, 1, '-infinity', 0, NULL, 0),
	(237, 1, '-infinity', 0, NULL, 0),
	(238, 1, '-infinity', 0, NULL, 0),
	(239, 1, '-infinity', 0, NULL, 0),
	(240, 1, '-infinity', 0, NULL, 0),
	(241, 1, '-infinity', 0, NULL, 0),
	(242, 1, '-infinity', 0, NULL, 0),
	(243, 1, '-infinity', 0, NULL, 0),
	(244, 1, '-infinity', 0, NULL, 0),
	(245, 1, '-infinity', 0, NULL, 0),
	(246, 1, '-infinity', 0, NULL, 0),
	(247, 1, '-infinity', 0, NULL, 0),
	(248, 1, '-infinity', 0, NULL, 0),
	(249, 1, '-infinity', 0, NULL, 0),
	(250, 1, '-infinity', 0, NULL, 0),
	(251, 1, '-infinity', 0, NULL, 0),
	(252, 1, '-infinity', 0, NULL, 0),
	(253, 1, '-infinity', 0, NULL, 0),
	(254, 1, '-infinity', 0, NULL, 0),
	(255, 1, '-infinity', 0, NULL, 0),
	(256, 1, '-infinity', 0, NULL, 0),
	(257, 1, '-infinity', 0, NULL, 0),
	(258, 1, '-infinity', 0, NULL, 0),
	(259, 1, '-infinity', 0, NULL, 0),
	(260, 1, '-infinity', 0, NULL, 0),
	(261, 1, '-infinity', 0, NULL, 0),
	(262, 1, '-infinity', 0, NULL, 0),
	(263, 1, '-infinity', 0, NULL, 0),
	(264, 1, '-infinity', 0, NULL, 0),
	(265, 1, '-infinity', 0, NULL, 0),
	(266, 1, '-infinity', 0, NULL, 0),
	(267, 1, '-infinity', 0, NULL, 0),
	(268, 1, '-infinity', 0, NULL, 0),
	(269, 1, '-infinity', 0, NULL, 0),
	(270, 1, '-infinity', 0, NULL, 0),
	(271, 1, '-infinity', 0, NULL, 0),
	(272, 1, '-infinity', 0, NULL, 0),
	(273, 1, '-infinity', 0, NULL, 0),
	(274, 1, '-infinity', 0, NULL, 0),
	(275, 1, '-infinity', 0, NULL, 0),
	(276, 1, '-infinity', 0, NULL, 0),
	(277, 1, '-infinity', 0, NULL, 0),
	(278, 1, '-infinity', 0, NULL, 0),
	(279, 1, '-infinity', 0, NULL, 0),
	(280, 1, '-infinity', 0, NULL, 0),
	(281, 1, '-infinity', 0, NULL, 0),
	(282, 1, '-infinity', 0, NULL, 0),
	(283, 1, '-infinity', 0, NULL, 0),
	(284, 1, '-infinity', 0, NULL, 0),
	(285, 1, '-infinity', 0, NULL, 0),
	(286, 1, '-infinity', 0, NULL, 0),
	(287, 1, '-infinity', 0, NULL, 0),
	(288, 1, '-infinity', 0, NULL, 0),
	(289, 1, '-infinity', 0, NULL, 0),
	(290, 1, '-infinity', 0, NULL, 0),
	(291, 1, '-infinity', 0, NULL, 0),
	(292, 1, '-infinity', 0, NULL, 0),
	(293, 1, '-infinity', 0, NULL, 0),
	(294, 1, '-infinity', 0, NULL, 0),
	(295, 1, '-infinity', 0, NULL, 0),
	(296, 1, '-infinity', 0, NULL, 0),
	(297, 1, '-infinity', 0, NULL, 0),
	(298, 1, '-infinity', 0, NULL, 0),
	(299, 1, '-infinity', 0, NULL, 0),
	(300, 1, '-infinity', 0, NULL, 0);
INSERT INTO outboxd.slot VALUES
	(301, 1, '-infinity', 0, NULL, 0),
	(302, 1, '-infinity', 0, NULL, 0),
	(303, 1, '-infinity', 0, NULL, 0),
	(304, 1, '-infinity', 0, NULL, 0),
	(305, 1, '-infinity', 0, NULL, 0),
	(306, 1, '-infinity', 0, NULL, 0),
	(307, 1, '-infinity', 0, NULL, 0),
	(308, 1, '-infinity', 0, NULL, 0),
	(309, 1, '-infinity', 0, NULL, 0),
	(310, 1, '-infinity', 0, NULL, 0),
	(311, 1, '-infinity', 0, NULL, 0),
	(312, 1, '-infinity', 0, NULL, 0),
	(313, 1, '-infinity', 0, NULL, 0),
	(314, 1, '-infinity', 0, NULL, 0),
	(315, 1, '-infinity', 0, NULL, 0),
	(316, 1, '-infinity', 0, NULL, 0),
	(317, 1, '-infinity', 0, NULL, 0),
	(318, 1, '-infinity', 0, NULL, 0),
	(319, 1, '-infinity', 0, NULL, 0),
	(320, 1, '-infinity', 0, NULL, 0),
	(321, 1, '-infinity', 0, NULL, 0),
	(322, 1, '-infinity', 0, NULL, 0),
	(323, 1, '-infinity', 0, NULL, 0),
	(324, 1, '-infinity', 0, NULL, 0),
	(325, 1, '-infinity', 0, NULL, 0),
	(326, 1, '-infinity', 0, NULL, 0),
	(327, 1, '-infinity', 0, NULL, 0),
	(328, 1, '-infinity', 0, NULL, 0),
	(329, 1, '-infinity', 0, NULL, 0),
	(330, 1, '-infinity', 0, NULL, 0),
	(331, 1, '-infinity', 0, NULL, 0),
	(332, 1, '-infinity', 0, NULL, 0),
	(333, 1, '-infinity', 0, NULL, 0),
	(334, 1, '-infinity', 0, NULL, 0),
	(335, 1, '-infinity', 0, NULL, 0),
	(336, 1, '-infinity', 0, NULL, 0),
	(337, 1, '-infinity', 0, NULL, 0),
	(338, 1, '-infinity', 0, NULL, 0),
	(339, 1, '-infinity', 0, NULL, 0),
	(340, 1, '-infinity', 0, NULL, 0),
	(341, 1, '-infinity', 0, NULL, 0),
	(342, 1, '-infinity', 0, NULL, 0),
	(343, 1, '-infinity', 0, NULL, 0),
	(344, 1, '-infinity', 0, NULL, 0),
	(345, 1, '-infinity', 0, NULL, 0),
	(346, 1, '-infinity', 0, NULL, 0),
	(347, 1, '-infinity', 0, NULL, 0),
	(348, 1, '-infinity', 0, NULL, 0),
	(349, 1, '-infinity', 0, NULL, 0),
	(350, 1, '-infinity', 0, NULL, 0),
	(351, 1, '-infinity', 0, NULL, 0),
	(352, 1, '-infinity', 0, NULL, 0),
	(353, 1, '-infinity', 0, NULL, 0),
	(354, 1, '-infinity', 0, NULL, 0),
	(355, 1, '-infinity', 0, NULL, 0),
	(356, 1, '-infinity', 0, NULL, 0),
	(357, 1, '-infinity', 0, NULL, 0),
	(358, 1, '-infinity', 0, NULL, 0),
	(359, 1, '-infinity', 0, NULL, 0),
	(360, 1, '-infinity', 0, NULL, 0),
	(361, 1, '-infinity', 0, NULL, 0),
	(362, 1, '-infinity', 0, NULL, 0),
	(363, 1, '-infinity', 0, NULL, 0),
	(364, 1, '-infinity', 0, NULL, 0),
	(365, 1, '-infinity', 0, NULL, 0),
	(366, 1, '-infinity', 0, NULL, 0),
	(367, 1, '-infinity', 0, NULL, 0),
	(368, 1, '-infinity', 0, NULL, 0),
	(369, 1, '-infinity', 0, NULL, 0),
	(370, 1, '-infinity', 0, NULL, 0),
	(371, 1, '-infinity', 0, NULL, 0),
	(372, 1, '-infinity', 0, NULL, 0),
	(373, 1, '-infinity', 0, NULL, 0),
	(374, 1, '-infinity', 0, NULL, 0),
	(375, 1, '-infinity', 0, NULL, 0),
	(376, 1, '-infinity', 0, NULL, 0),
	(377, 1, '-infinity', 0, NULL, 0),
	(378, 1, '-infinity', 0, NULL, 0),
	(379, 1, '-infinity', 0, NULL, 0),
	(380, 1, '-infinity', 0, NULL, 0),
	(381, 1, '-infinity', 0, NULL, 0),
	(382, 1, '-infinity', 0, NULL, 0),
	(383, 1, '-infinity', 0, NULL, 0),
	(384, 1, '-infinity', 0, NULL, 0),
	(385, 1, '-infinity', 0, NULL, 0),
	(386, 1, '-infinity', 0, NULL, 0),
	(387, 1, '-infinity', 0, NULL, 0),
	(388, 1, '-infinity', 0, NULL, 0),
	(389, 1, '-infinity', 0, NULL, 0),
	(390, 1, '-infinity', 0, NULL, 0),
	(391, 1, '-infinity', 0, NULL, 0),
	(392, 1, '-infinity', 0, NULL, 0),
	(393, 1, '-infinity', 0, NULL, 0),
	(394, 1, '-infinity', 0, NULL, 0),
	(395, 1, '-infinity', 0, NULL, 0),
	(396, 1, '-infinity', 0, NULL, 0),
	(397, 1, '-infinity', 0, NULL, 0),
	(398, 1, '-infinity', 0, NULL, 0),
	(399, 1, '-infinity', 0, NULL, 0),
	(400, 1, '-infinity', 0, NULL, 0);
INSERT INTO outboxd.slot VALUES
	(401, 1, '-infinity', 0, NULL, 0),
	(402, 1, '-infinity', 0, NULL, 0),
	(403, 1, '-infinity', 0, NULL, 0),
	(404, 1, '-infinity', 0, NULL, 0),
	(405, 1, '-infinity', 0, NULL, 0),
	(406, 1, '-infinity', 0, NULL, 0),
	(407, 1, '-infinity', 0, NULL, 0),
	(408, 1, '-infinity', 0, NULL, 0),
	(409, 1, '-infinity', 0, NULL, 0),
	(410, 1, '-infinity', 0, NULL, 0),
	(411, 1, '-infinity', 0, NULL, 0),
	(412, 1, '-infinity', 0, NULL, 0),
	(413, 1, '-infinity', 0, NULL, 0),
	(414, 1, '-infinity', 0, NULL, 0),
	(415, 1, '-infinity', 0, NULL, 0),
	(416, 1, '-infinity', 0, NULL, 0),
	(417, 1, '-infinity', 0, NULL, 0),
	(418, 1, '-infinity', 0, NULL, 0),
	(419, 1, '-infinity', 0, NULL, 0),
	(420, 1, '-infinity', 0, NULL, 0),
	(421, 1, '-infinity', 0, NULL, 0),
	(422, 1, '-infinity', 0, NULL, 0),
	(423, 1, '-infinity', 0, NULL, 0),
	(424, 1, '-infinity', 0, NULL, 0),
	(425, 1, '-infinity', 0, NULL, 0),
	(426, 1, '-infinity', 0, NULL, 0),
	(427, 1, '-infinity', 0, NULL, 0),
	(428, 1, '-infinity', 0, NULL, 0),
	(429, 1, '-infinity', 0, NULL, 0),
	(430, 1, '-infinity', 0, NULL, 0),
	(431, 1, '-infinity', 0, NULL, 0),
	(432, 1, '-infinity', 0, NULL, 0),
	(433, 1, '-infinity', 0, NULL, 0),
	(434, 1, '-infinity', 0, NULL, 0),
	(435, 1, '-infinity', 0, NULL, 0),
	(436, 1, '-infinity', 0, NULL, 0),
	(437, 1, '-infinity', 0, NULL, 0),
	(438, 1, '-infinity', 0, NULL, 0),
	(439, 1, '-infinity', 0, NULL, 0),
	(440, 1, '-infinity', 0, NULL, 0),
	(441, 1, '-infinity', 0, NULL, 0),
	(442, 1, '-infinity', 0, NULL, 0),
	(443, 1, '-infinity', 0, NULL, 0),
	(444, 1, '-infinity', 0, NULL, 0),
	(445, 1, '-infinity', 0, NULL, 0),
	(446, 1, '-infinity', 0, NULL, 0),
	(447, 1, '-infinity', 0, NULL, 0),
	(448, 1, '-infinity', 0, NULL, 0),
	(449, 1, '-infinity', 0, NULL, 0),
	(450, 1, '-infinity', 0, NULL, 0),
	(451, 1, '-infinity', 0, NULL, 0),
	(452, 1, '-infinity', 0, NULL, 0),
	(453, 1, '-infinity', 0, NULL, 0),
	(454, 1, '-infinity', 0, NULL, 0),
	(455, 1, '-infinity', 0, NULL, 0),
	(456, 1, '-infinity', 0, NULL, 0),
	(457, 1, '-infinity', 0, NULL, 0),
	(458, 1, '-infinity', 0, NULL, 0),
	(459, 1, '-infinity', 0, NULL, 0),
	(460, 1, '-infinity', 0, NULL, 0),
	(461, 1, '-infinity', 0, NULL, 0),
	(462, 1, '-infinity', 0, NULL, 0),
	(463, 1, '-infinity', 0, NULL, 0),
	(464, 1, '-infinity', 0, NULL, 0),
	(465, 1, '-infinity', 0, NULL, 0),
	(466, 1, '-infinity', 0, NULL, 0),
	(467, 1, '-infinity', 0, NULL, 0),
	(468, 1, '-infinity', 0, NULL, 0),
	(469, 1, '-infinity', 0, NULL, 0),
	(470, 1, '-infinity', 0, NULL, 0),
	(471, 1, '-infinity', 0, NULL, 0),
	(472, 1, '-infinity', 0, NULL, 0),
	(473, 1, '-infinity', 0, NULL, 0),
	(474, 1, '-infinity', 0, NULL, 0),
	(475, 1, '-infinity', 0, NULL, 0),
	(476, 1, '-infinity', 0, NULL, 0),
	(477, 1, '-infinity', 0, NULL, 0),
	(478, 1, '-infinity', 0, NULL, 0),
	(479, 1, '-infinity', 0, NULL, 0),
	(480, 1, '-infinity', 0, NULL, 0),
	(481, 1, '-infinity', 0, NULL, 0),
	(482, 1, '-infinity', 0, NULL, 0),
	(483, 1, '-infinity', 0, NULL, 0),
	(484, 1, '-infinity', 0, NULL, 0),
	(485, 1, '-infinity', 0, NULL, 0),
	(486, 1, '-infinity', 0, NULL, 0),
	(487, 1, '-infinity', 0, NULL, 0),
	(488, 1, '-infinity', 0, NULL, 0),
	(489, 1, '-infinity', 0, NULL, 0),
	(490, 1, '-infinity', 0, NULL, 0),
	(491, 1, '-infinity', 0, NULL, 0),
	(492, 1, '-infinity', 0, NULL, 0),
	(493, 1, '-infinity', 0, NULL, 0),
	(494, 1, '-infinity', 0, NULL, 0),
	(495, 1, '-infinity', 0, NULL, 0),
	(496, 1, '-infinity', 0, NULL, 0),
	(497, 1, '-infinity', 0, NULL, 0),
	(498, 1, '-infinity', 0, NULL, 0),
	(499, 1, '-infinity', 0, NULL, 0),
	(500, 1, '-infinity', 0, NULL, 0);
INSERT INTO outboxd.state_delta VALUES
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
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
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
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
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
	('rejected', 1),
	('rejected', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
	('accepted', 1),
	('accepted', -1),
	('failed', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
	('rejected', 1),
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
	('sending', -1),
	('accepted', 1),
	('accepted', -1),
	('completed', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
	('accepted', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
	('accepted', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
	('accepted', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('sending', -1),
	('rejected', 1),
	('queued', 1),
	('sending', 1),
	('queued', -1),
	('queued', 1),
	('queued', 1);
INSERT INTO outboxd.submission OVERRIDING SYSTEM VALUE VALUES
	('01a2017b-f840-7524-a37c-965725e50102', 1, '1', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "done 0", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"done 0","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:31.339051+00', '2026-11-22 04:20:31.45272+00', 'completed', 3, false, NULL, 1, '3ff3761f-85d7-4ad2-84e4-b5ffcb144199', NULL, NULL, '2026-11-22 04:20:31.542515+00', false, 0, 0, 0, false, '674b9cf7-2c8a-4b81-bb83-3bb6f8c146e6', false, NULL, '2026-11-22 04:20:31.627735+00', NULL, 1, 0, NULL, NULL, 284, NULL, NULL, '{"customerId":"C-1","processedAt":"2026-11-22T04:20:31.789Z"}', '2026-11-22 04:20:31.920861+00', false),
	('01a2017b-fa96-77da-aa11-6f4566a751d6', 2, '2', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "done 1", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"done 1","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:32.017691+00', '2026-11-22 04:20:32.023784+00', 'completed', 4, false, NULL, 1, '60facd61-4ec3-4eae-8b43-19214ae161b1', NULL, NULL, '2026-11-22 04:20:32.034906+00', false, 0, 0, 0, false, 'c176f590-6aaa-4b62-8bc5-973f9dc36d0c', false, NULL, '2026-11-22 04:20:32.051381+00', NULL, 2, 0, NULL, 131, 231, NULL, NULL, '{"customerId":"C-1","processedAt":"2026-11-22T04:20:32.240Z"}', '2026-11-22 04:20:32.286079+00', false),
	('01a2017b-fbe0-74ef-88c9-b8dda10833c0', 3, '3', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "done 2", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"done 2","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:32.348066+00', '2026-11-22 04:20:32.382592+00', 'completed', 3, false, NULL, 1, '184bef05-d819-49c0-8f20-091f857571c5', NULL, NULL, '2026-11-22 04:20:32.396384+00', false, 0, 0, 0, false, '1963614d-6a5f-42b5-a102-6fa6f567fe19', false, NULL, '2026-11-22 04:20:32.427903+00', NULL, 1, 0, NULL, NULL, 179, NULL, NULL, '{"customerId":"C-1","processedAt":"2026-11-22T04:20:32.602Z"}', '2026-11-22 04:20:32.612705+00', false),
	('01a2017b-fd25-74af-a522-5feb66fd0bb1', 4, '4', 'data', 'K-1', 'data', '{"amount": 19.99, "field1": "value1", "field2": "by key", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"by key","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:32.670453+00', '2026-11-22 04:20:32.679392+00', 'completed', 4, false, NULL, 1, '64252d8b-84c5-49f9-bada-73dac331daba', NULL, NULL, '2026-11-22 04:20:32.692917+00', false, 0, 0, 0, false, '3db67f73-9be0-4d25-b2f7-d05a7aae3f60', false, NULL, '2026-11-22 04:20:32.704936+00', NULL, 2, 0, NULL, 158, 220, NULL, NULL, '{"customerId":"C-1","processedAt":"2026-11-22T04:20:32.899Z"}', '2026-11-22 04:20:32.930809+00', false),
	('01a2017b-fe64-74d7-9e8a-b76b1183bf3f', 5, '5', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "unknown", "orderDate": "2026-11-20T10:00:00Z", "customerId": "UNKNOWN"}', '{"customerId":"UNKNOWN","data":{"field1":"value1","field2":"unknown","customer_id":"UNKNOWN","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:32.987717+00', '2026-11-22 04:20:32.998921+00', 'rejected', 2, false, NULL, 1, '73574598-93bd-4d3a-801c-87591997a593', NULL, NULL, '2026-11-22 04:20:33.007373+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 'E001', 'the service answered 400 E001: Invalid customer: UNKNOWN was not found.', NULL, '2026-11-22 04:20:33.019633+00', false),
	('01a2017b-fecb-72f1-baf5-8e115a64450f', 6, '6', 'data', NULL, 'data', '{"amount": 19.995, "field1": "value1", "field2": "cents", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', NULL, true, false, '2026-11-22 04:20:33.093324+00', '2026-11-22 04:20:33.101084+00', 'rejected', 0, false, NULL, 0, 'd8684268-5b7d-492e-bdf7-cbb27f420443', NULL, NULL, NULL, false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 'total_amount (from amount) has 3 decimals, decimal(10,2) takes 2: "19.995"', NULL, '2026-11-22 04:20:33.101076+00', false),
	('01a2017b-ff2e-743a-82aa-81ef7687bfc7', 7, '7', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "fail:E001", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"fail:E001","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:33.195268+00', '2026-11-22 04:20:33.199696+00', 'failed', 5, false, NULL, 1, '0d79c6ab-0ec4-4b44-a63f-7b0861c7f73c', NULL, NULL, '2026-11-22 04:20:33.203859+00', false, 0, 0, 0, false, 'e28a7f38-3e99-4d51-aec1-89a4c0597e32', false, NULL, '2026-11-22 04:20:33.212373+00', NULL, 3, 0, NULL, 169, 258, 'E001', 'the service processed it: failed with E001', NULL, '2026-11-22 04:20:33.480893+00', false),
	('01a2017c-00af-75ca-b6f5-b3aa9f1ea765', 8, '8', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "given up", "orderDate": "2026-11-20T10:00:00Z", "customerId": "X1"}', '{"customerId":"X1","data":{"field1":"value1","field2":"given up","customer_id":"X1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:33.577917+00', '2026-11-22 04:20:33.584544+00', 'discarded', 3, false, NULL, 1, '21595156-87f4-4317-a064-181db02bd303', NULL, NULL, '2026-11-22 04:20:33.592871+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 'E001', 'the service answered 400 E001: Invalid customer: X1 was not found.', NULL, '2026-11-22 04:20:35.243886+00', false),
	('01a2017c-07a5-730d-8b5d-e86a677bf24a', 9, '9', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "no answer", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"no answer","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:35.35972+00', '2026-11-22 04:20:35.367028+00', 'uncertain', 2, false, NULL, 1, '20593d1c-4932-484f-90da-6f8e4c86a9d4', NULL, NULL, '2026-11-22 04:20:35.375411+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 'the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived', NULL, '2026-11-22 04:20:35.395797+00', false),
	('01a2017c-0870-72ad-a205-6f0bccd25b81', 10, '10', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "resolved", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"resolved","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:35.563276+00', '2026-11-22 04:20:35.569284+00', 'completed', 5, false, NULL, 1, '9804efc2-82fc-4287-9c13-de4eaa981ae1', NULL, NULL, '2026-11-22 04:20:35.576967+00', false, 0, 0, 0, false, 'fda60c55-505e-4ff8-88ec-de0753d73c14', false, NULL, '2026-11-22 04:20:35.587094+00', NULL, 3, 0, NULL, 172, 268, NULL, NULL, '{"customerId":"C-1","processedAt":"2026-11-22T04:20:35.782Z"}', '2026-11-22 04:20:35.872667+00', false),
	('01a2017c-0a6f-73e6-88f6-f5a48b87c2ba', 12, '12', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "under way 1", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"under way 1","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:36.058682+00', '2026-11-22 04:20:36.081038+00', 'accepted', 5, false, NULL, 1, '92b3b9e2-17d5-4281-96c7-9f45a0b6dc5c', NULL, NULL, '2026-11-22 04:20:36.090097+00', false, 0, 0, 0, false, 'b78de336-17fe-4a36-a55c-40c443b30ad3', false, 'fb0565b4-ea5d-40df-8245-a67ce8ee87bc', '2026-11-22 04:20:36.116041+00', '2026-11-22 04:20:36.587732+00', 3, 0, NULL, 300, NULL, NULL, NULL, NULL, NULL, false),
	('01a2017c-0a2c-7375-b92d-4c1801c13b1e', 11, '11', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "under way 0", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"under way 0","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:35.998838+00', '2026-11-22 04:20:36.013439+00', 'accepted', 6, false, NULL, 1, 'e02f6024-fa2c-4572-b349-a9e8e12e0627', NULL, NULL, '2026-11-22 04:20:36.017046+00', false, 0, 0, 0, false, 'e59dd539-3dce-4f36-a4e2-9dc5fd1b190f', false, '657c768c-65b8-4fbd-9168-f711c7cbc2f6', '2026-11-22 04:20:36.031557+00', '2026-11-22 04:20:36.60403+00', 4, 0, NULL, 519, NULL, NULL, NULL, NULL, NULL, false),
	('01a2017c-0c50-7744-9ddb-f029cdd98f6a', 15, '15', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "on the wire", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"on the wire","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:36.53153+00', '2026-11-22 04:20:36.561502+00', 'sending', 1, false, NULL, 1, '8f2f4f10-fb76-41de-8d5b-aa19e9a54412', '6a96d9b1-90b9-4dff-af6a-99947f1e3d69', 'ebfadc35-695e-4b6b-bde3-49c1a804da14', '2026-11-22 04:20:36.607559+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false),
	('01a2017c-0af2-764b-8f4b-fdb008a29630', 14, '14', 'data', 'K-3', 'data', '{"amount": 19.99, "field1": "value1", "field2": "behind", "orderDate": "2026-11-20T10:00:00Z", "customerId": "UNKNOWN"}', '{"customerId":"UNKNOWN","data":{"field1":"value1","field2":"behind","customer_id":"UNKNOWN","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:36.203584+00', '2026-11-22 04:20:36.214321+00', 'rejected', 2, false, NULL, 1, '1bcb836b-1275-4605-aed6-8d22862ee43c', NULL, NULL, '2026-11-22 04:20:36.228304+00', false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 'E001', 'the service answered 400 E001: Invalid customer: UNKNOWN was not found.', NULL, '2026-11-22 04:20:36.263255+00', false),
	('01a2017c-0aa9-7320-bc73-24ad7845ffb9', 13, '13', 'data', 'K-2', 'data', '{"amount": 19.99, "field1": "value1", "field2": "under way 2", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"under way 2","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:36.133625+00', '2026-11-22 04:20:36.139906+00', 'accepted', 4, false, NULL, 1, '78ba62d4-15ca-49b1-9f23-ca27621b3d92', NULL, NULL, '2026-11-22 04:20:36.147917+00', false, 0, 0, 0, false, '08e1f395-4701-4e83-bb2f-6da0485eea74', false, '0500e747-2ea7-427a-a8b8-aba56b311f83', '2026-11-22 04:20:36.163341+00', '2026-11-22 04:20:36.445907+00', 2, 0, NULL, 216, NULL, NULL, NULL, NULL, NULL, false),
	('01a2017c-195e-73ae-9e43-a7714c43131d', 16, '16', 'data', NULL, 'data', '{"amount": 19.99, "field1": "value1", "field2": "waits 0", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"waits 0","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:39.854284+00', '2026-11-22 04:20:39.912233+00', 'queued', 0, false, '2026-11-22 04:20:39.870639+00', 0, 'e349ca11-1fb9-4791-98d1-14ed7ff1bf29', NULL, NULL, NULL, false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false),
	('01a2017c-1995-73d2-9b66-eb439ac740e1', 17, '17', 'data', 'K-2', 'data', '{"amount": 19.99, "field1": "value1", "field2": "waits 1", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '{"customerId":"C-1","data":{"field1":"value1","field2":"waits 1","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', true, false, '2026-11-22 04:20:39.92865+00', '2026-11-22 04:20:39.963095+00', 'queued', 0, false, '2026-11-22 04:20:39.942596+00', 0, '20c456f2-32c2-41c1-9809-5dc2c151ccd5', NULL, NULL, NULL, false, 0, 0, 0, false, NULL, false, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false);
INSERT INTO outboxd.submission_event OVERRIDING SYSTEM VALUE VALUES
	(1, '01a2017b-f840-7524-a37c-965725e50102', '2026-11-22 04:20:31.453023+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(2, '01a2017b-f840-7524-a37c-965725e50102', '2026-11-22 04:20:31.546227+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(3, '01a2017b-f840-7524-a37c-965725e50102', '2026-11-22 04:20:31.628062+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "674b9cf7-2c8a-4b81-bb83-3bb6f8c146e6"}'),
	(4, '01a2017b-f840-7524-a37c-965725e50102', '2026-11-22 04:20:31.921028+00', 'accepted', 'completed', 1, 'completed', 'daemon ebfadc35', '{"transactionId": "674b9cf7-2c8a-4b81-bb83-3bb6f8c146e6"}'),
	(5, '01a2017b-fa96-77da-aa11-6f4566a751d6', '2026-11-22 04:20:32.023896+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(6, '01a2017b-fa96-77da-aa11-6f4566a751d6', '2026-11-22 04:20:32.035091+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(7, '01a2017b-fa96-77da-aa11-6f4566a751d6', '2026-11-22 04:20:32.051508+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "c176f590-6aaa-4b62-8bc5-973f9dc36d0c"}'),
	(8, '01a2017b-fa96-77da-aa11-6f4566a751d6', '2026-11-22 04:20:32.286172+00', 'accepted', 'completed', 1, 'completed', 'daemon ebfadc35', '{"transactionId": "c176f590-6aaa-4b62-8bc5-973f9dc36d0c"}'),
	(9, '01a2017b-fbe0-74ef-88c9-b8dda10833c0', '2026-11-22 04:20:32.38271+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(10, '01a2017b-fbe0-74ef-88c9-b8dda10833c0', '2026-11-22 04:20:32.396495+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(11, '01a2017b-fbe0-74ef-88c9-b8dda10833c0', '2026-11-22 04:20:32.428039+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "1963614d-6a5f-42b5-a102-6fa6f567fe19"}'),
	(12, '01a2017b-fbe0-74ef-88c9-b8dda10833c0', '2026-11-22 04:20:32.612808+00', 'accepted', 'completed', 1, 'completed', 'daemon ebfadc35', '{"transactionId": "1963614d-6a5f-42b5-a102-6fa6f567fe19"}'),
	(13, '01a2017b-fd25-74af-a522-5feb66fd0bb1', '2026-11-22 04:20:32.679549+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(14, '01a2017b-fd25-74af-a522-5feb66fd0bb1', '2026-11-22 04:20:32.693054+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(15, '01a2017b-fd25-74af-a522-5feb66fd0bb1', '2026-11-22 04:20:32.705176+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "3db67f73-9be0-4d25-b2f7-d05a7aae3f60"}'),
	(16, '01a2017b-fd25-74af-a522-5feb66fd0bb1', '2026-11-22 04:20:32.930908+00', 'accepted', 'completed', 1, 'completed', 'daemon ebfadc35', '{"transactionId": "3db67f73-9be0-4d25-b2f7-d05a7aae3f60"}'),
	(17, '01a2017b-fe64-74d7-9e8a-b76b1183bf3f', '2026-11-22 04:20:32.999019+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(18, '01a2017b-fe64-74d7-9e8a-b76b1183bf3f', '2026-11-22 04:20:33.00749+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(19, '01a2017b-fe64-74d7-9e8a-b76b1183bf3f', '2026-11-22 04:20:33.019856+00', 'sending', 'rejected', 1, 'the service answered 400 E001: Invalid customer: UNKNOWN was not found.', 'daemon ebfadc35', '{"code": "E001", "error": "the service answered 400 E001: Invalid customer: UNKNOWN was not found."}'),
	(20, '01a2017b-fecb-72f1-baf5-8e115a64450f', '2026-11-22 04:20:33.10121+00', NULL, 'rejected', 0, 'did not map', 'daemon ebfadc35', NULL),
	(21, '01a2017b-ff2e-743a-82aa-81ef7687bfc7', '2026-11-22 04:20:33.199784+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(22, '01a2017b-ff2e-743a-82aa-81ef7687bfc7', '2026-11-22 04:20:33.203961+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(23, '01a2017b-ff2e-743a-82aa-81ef7687bfc7', '2026-11-22 04:20:33.212477+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "e28a7f38-3e99-4d51-aec1-89a4c0597e32"}'),
	(24, '01a2017b-ff2e-743a-82aa-81ef7687bfc7', '2026-11-22 04:20:33.481029+00', 'accepted', 'failed', 1, 'the service processed it: failed with E001', 'daemon ebfadc35', '{"code": "E001", "error": "the service processed it: failed with E001", "transactionId": "e28a7f38-3e99-4d51-aec1-89a4c0597e32"}'),
	(25, '01a2017c-00af-75ca-b6f5-b3aa9f1ea765', '2026-11-22 04:20:33.584638+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(26, '01a2017c-00af-75ca-b6f5-b3aa9f1ea765', '2026-11-22 04:20:33.592988+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(27, '01a2017c-00af-75ca-b6f5-b3aa9f1ea765', '2026-11-22 04:20:33.6639+00', 'sending', 'rejected', 1, 'the service answered 400 E001: Invalid customer: X1 was not found.', 'daemon ebfadc35', '{"code": "E001", "error": "the service answered 400 E001: Invalid customer: X1 was not found."}'),
	(28, '01a2017c-00af-75ca-b6f5-b3aa9f1ea765', '2026-11-22 04:20:35.244255+00', 'rejected', 'discarded', 1, 'discarded: written twice by the ERP', 'operator root', '{"reason": "written twice by the ERP"}'),
	(29, '01a2017c-07a5-730d-8b5d-e86a677bf24a', '2026-11-22 04:20:35.367147+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(30, '01a2017c-07a5-730d-8b5d-e86a677bf24a', '2026-11-22 04:20:35.375539+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(31, '01a2017c-07a5-730d-8b5d-e86a677bf24a', '2026-11-22 04:20:35.395948+00', 'sending', 'uncertain', 1, 'the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived', 'daemon ebfadc35', '{"error": "the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived"}'),
	(32, '01a2017c-0870-72ad-a205-6f0bccd25b81', '2026-11-22 04:20:35.569395+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(33, '01a2017c-0870-72ad-a205-6f0bccd25b81', '2026-11-22 04:20:35.577097+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(34, '01a2017c-0870-72ad-a205-6f0bccd25b81', '2026-11-22 04:20:35.587217+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "fda60c55-505e-4ff8-88ec-de0753d73c14"}'),
	(35, '01a2017c-0870-72ad-a205-6f0bccd25b81', '2026-11-22 04:20:35.872765+00', 'accepted', 'completed', 1, 'completed', 'daemon ebfadc35', '{"transactionId": "fda60c55-505e-4ff8-88ec-de0753d73c14"}'),
	(36, '01a2017c-0a2c-7375-b92d-4c1801c13b1e', '2026-11-22 04:20:36.013531+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(37, '01a2017c-0a2c-7375-b92d-4c1801c13b1e', '2026-11-22 04:20:36.017141+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(38, '01a2017c-0a2c-7375-b92d-4c1801c13b1e', '2026-11-22 04:20:36.031664+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "e59dd539-3dce-4f36-a4e2-9dc5fd1b190f"}'),
	(39, '01a2017c-0a6f-73e6-88f6-f5a48b87c2ba', '2026-11-22 04:20:36.081151+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(40, '01a2017c-0a6f-73e6-88f6-f5a48b87c2ba', '2026-11-22 04:20:36.090234+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(41, '01a2017c-0a6f-73e6-88f6-f5a48b87c2ba', '2026-11-22 04:20:36.11617+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "b78de336-17fe-4a36-a55c-40c443b30ad3"}'),
	(42, '01a2017c-0aa9-7320-bc73-24ad7845ffb9', '2026-11-22 04:20:36.140056+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(43, '01a2017c-0aa9-7320-bc73-24ad7845ffb9', '2026-11-22 04:20:36.148174+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(44, '01a2017c-0aa9-7320-bc73-24ad7845ffb9', '2026-11-22 04:20:36.163439+00', 'sending', 'accepted', 1, 'accepted', 'daemon ebfadc35', '{"transactionId": "08e1f395-4701-4e83-bb2f-6da0485eea74"}'),
	(45, '01a2017c-0af2-764b-8f4b-fdb008a29630', '2026-11-22 04:20:36.214473+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(46, '01a2017c-0af2-764b-8f4b-fdb008a29630', '2026-11-22 04:20:36.228434+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(47, '01a2017c-0af2-764b-8f4b-fdb008a29630', '2026-11-22 04:20:36.26337+00', 'sending', 'rejected', 1, 'the service answered 400 E001: Invalid customer: UNKNOWN was not found.', 'daemon ebfadc35', '{"code": "E001", "error": "the service answered 400 E001: Invalid customer: UNKNOWN was not found."}'),
	(48, '01a2017c-0c50-7744-9ddb-f029cdd98f6a', '2026-11-22 04:20:36.561601+00', NULL, 'queued', 0, 'captured', 'daemon ebfadc35', NULL),
	(49, '01a2017c-0c50-7744-9ddb-f029cdd98f6a', '2026-11-22 04:20:36.607682+00', 'queued', 'sending', 1, 'slot', 'daemon ebfadc35', NULL),
	(50, '01a2017c-195e-73ae-9e43-a7714c43131d', '2026-11-22 04:20:39.912421+00', NULL, 'queued', 0, 'captured', 'daemon b98fd504', NULL),
	(51, '01a2017c-1995-73d2-9b66-eb439ac740e1', '2026-11-22 04:20:39.963249+00', NULL, 'queued', 0, 'captured', 'daemon b98fd504', NULL);
INSERT INTO pgboss.job_common VALUES
	('229124ad-c3e4-4efd-9247-10b27c4e5909', 'outboxd_poll', 0, '{"submissionId": "01a2017b-f840-7524-a37c-965725e50102"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:31.886913+00', '2026-11-22 04:20:31.625448+00', '2026-11-22 04:20:31.897542+00', '2026-11-22 04:20:31.915063+00', '2036-11-19 04:20:31.886913+00', NULL, NULL, 'standard', '2026-11-22 04:20:31.897542+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('3460127d-0126-4a2c-ba47-1ce40cb2cb62', 'outboxd_poll', 0, '{"submissionId": "01a2017b-fa96-77da-aa11-6f4566a751d6"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:32.15489+00', '2026-11-22 04:20:32.045659+00', '2026-11-22 04:20:32.17786+00', '2026-11-22 04:20:32.190918+00', '2036-11-19 04:20:32.15489+00', NULL, NULL, 'standard', '2026-11-22 04:20:32.17786+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('848fffb2-403a-428f-a2b3-5c87cbc43dff', 'outboxd_poll', 0, '{"submissionId": "01a2017b-fa96-77da-aa11-6f4566a751d6"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:32.268814+00', '2026-11-22 04:20:32.190918+00', '2026-11-22 04:20:32.276094+00', '2026-11-22 04:20:32.284297+00', '2036-11-19 04:20:32.268814+00', NULL, NULL, 'standard', '2026-11-22 04:20:32.276094+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('6c12234f-4345-4cca-a8a1-949d6d7e6d87', 'outboxd_poll', 0, '{"submissionId": "01a2017b-fbe0-74ef-88c9-b8dda10833c0"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:32.581075+00', '2026-11-22 04:20:32.426203+00', '2026-11-22 04:20:32.591411+00', '2026-11-22 04:20:32.609786+00', '2036-11-19 04:20:32.581075+00', NULL, NULL, 'standard', '2026-11-22 04:20:32.591411+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('c6e16f69-7abd-4fa0-b553-38c4eb56511f', 'outboxd_poll', 0, '{"submissionId": "01a2017b-fd25-74af-a522-5feb66fd0bb1"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:32.810307+00', '2026-11-22 04:20:32.702406+00', '2026-11-22 04:20:32.858279+00', '2026-11-22 04:20:32.885771+00', '2036-11-19 04:20:32.810307+00', NULL, NULL, 'standard', '2026-11-22 04:20:32.858279+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('dd61abe6-085c-4ee3-814e-dd69a152d029', 'outboxd_poll', 0, '{"submissionId": "01a2017b-fd25-74af-a522-5feb66fd0bb1"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:32.915893+00', '2026-11-22 04:20:32.885771+00', '2026-11-22 04:20:32.920455+00', '2026-11-22 04:20:32.92777+00', '2036-11-19 04:20:32.915893+00', NULL, NULL, 'standard', '2026-11-22 04:20:32.920455+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('980d88b6-1329-4a9c-8500-b2e789c03b23', 'outboxd_poll', 0, '{"submissionId": "01a2017b-ff2e-743a-82aa-81ef7687bfc7"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:33.297953+00', '2026-11-22 04:20:33.211404+00', '2026-11-22 04:20:33.302782+00', '2026-11-22 04:20:33.309636+00', '2036-11-19 04:20:33.297953+00', NULL, NULL, 'standard', '2026-11-22 04:20:33.302782+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('2b2f9685-52b7-4451-97e4-821f1be9e867', 'outboxd_poll', 0, '{"submissionId": "01a2017b-ff2e-743a-82aa-81ef7687bfc7"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:33.371231+00', '2026-11-22 04:20:33.309636+00', '2026-11-22 04:20:33.374195+00', '2026-11-22 04:20:33.386926+00', '2036-11-19 04:20:33.371231+00', NULL, NULL, 'standard', '2026-11-22 04:20:33.374195+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('bb26f647-bf15-45b2-8c36-0da318339fb9', 'outboxd_poll', 0, '{"submissionId": "01a2017b-ff2e-743a-82aa-81ef7687bfc7"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:33.419243+00', '2026-11-22 04:20:33.386926+00', '2026-11-22 04:20:33.445809+00', '2026-11-22 04:20:33.478883+00', '2036-11-19 04:20:33.419243+00', NULL, NULL, 'standard', '2026-11-22 04:20:33.445809+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('88ea7eaf-b926-491a-9b10-3e6d95b980ec', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0870-72ad-a205-6f0bccd25b81"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:35.667689+00', '2026-11-22 04:20:35.586033+00', '2026-11-22 04:20:35.675813+00', '2026-11-22 04:20:35.710334+00', '2036-11-19 04:20:35.667689+00', NULL, NULL, 'standard', '2026-11-22 04:20:35.675813+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('73c99506-3992-456b-921c-af62476cea43', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0870-72ad-a205-6f0bccd25b81"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:35.742543+00', '2026-11-22 04:20:35.710334+00', '2026-11-22 04:20:35.750541+00', '2026-11-22 04:20:35.773682+00', '2036-11-19 04:20:35.742543+00', NULL, NULL, 'standard', '2026-11-22 04:20:35.750541+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('d496ef55-cb2a-4d32-b5ea-f4c27a839933', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0870-72ad-a205-6f0bccd25b81"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:35.806447+00', '2026-11-22 04:20:35.773682+00', '2026-11-22 04:20:35.826253+00', '2026-11-22 04:20:35.867829+00', '2036-11-19 04:20:35.806447+00', NULL, NULL, 'standard', '2026-11-22 04:20:35.826253+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('0a880341-9230-4e2c-b356-2acf8969030a', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a2c-7375-b92d-4c1801c13b1e"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.111286+00', '2026-11-22 04:20:36.02963+00', '2026-11-22 04:20:36.116673+00', '2026-11-22 04:20:36.137493+00', '2036-11-19 04:20:36.111286+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.116673+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('418fe0b5-9ba4-450f-ae7a-9a0cb7f3816e', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a6f-73e6-88f6-f5a48b87c2ba"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.196455+00', '2026-11-22 04:20:36.114799+00', '2026-11-22 04:20:36.201641+00', '2026-11-22 04:20:36.220972+00', '2036-11-19 04:20:36.196455+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.201641+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('5584abf7-a4c4-46ce-8b78-07c9a54c010a', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a2c-7375-b92d-4c1801c13b1e"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.18077+00', '2026-11-22 04:20:36.137493+00', '2026-11-22 04:20:36.22377+00', '2026-11-22 04:20:36.243641+00', '2036-11-19 04:20:36.18077+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.22377+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('3f43697d-65bc-46ff-837b-8fa548e8e002', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0aa9-7320-bc73-24ad7845ffb9"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.243965+00', '2026-11-22 04:20:36.162309+00', '2026-11-22 04:20:36.255268+00', '2026-11-22 04:20:36.300529+00', '2036-11-19 04:20:36.243965+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.255268+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('67938c19-a868-427a-9624-7f8512c0a030', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a6f-73e6-88f6-f5a48b87c2ba"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.267861+00', '2026-11-22 04:20:36.220972+00', '2026-11-22 04:20:36.291467+00', '2026-11-22 04:20:36.343626+00', '2036-11-19 04:20:36.267861+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.291467+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('9287ccfd-9586-4dd3-848c-32bba8563ed5', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a2c-7375-b92d-4c1801c13b1e"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.269228+00', '2026-11-22 04:20:36.243641+00', '2026-11-22 04:20:36.291467+00', '2026-11-22 04:20:36.343626+00', '2036-11-19 04:20:36.269228+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.291467+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('d8c2084b-f4d8-4482-af0a-fb3a7adbd7d9', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0aa9-7320-bc73-24ad7845ffb9"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.338652+00', '2026-11-22 04:20:36.300529+00', '2026-11-22 04:20:36.374129+00', '2026-11-22 04:20:36.411093+00', '2036-11-19 04:20:36.338652+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.374129+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('bb86667c-917e-4a3e-ba67-412b6cefc0f6', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a6f-73e6-88f6-f5a48b87c2ba"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.369203+00', '2026-11-22 04:20:36.343626+00', '2026-11-22 04:20:36.395395+00', '2026-11-22 04:20:36.548443+00', '2036-11-19 04:20:36.369203+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.395395+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('f2102496-8d70-4062-acc9-b0beedd6949b', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a2c-7375-b92d-4c1801c13b1e"}', 'completed', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.379632+00', '2026-11-22 04:20:36.343626+00', '2026-11-22 04:20:36.503319+00', '2026-11-22 04:20:36.563251+00', '2036-11-19 04:20:36.379632+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.503319+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('657c768c-65b8-4fbd-9168-f711c7cbc2f6', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a2c-7375-b92d-4c1801c13b1e"}', 'created', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.594329+00', '2026-11-22 04:20:36.563251+00', NULL, NULL, '2036-11-19 04:20:36.594329+00', NULL, NULL, 'standard', NULL, 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('0500e747-2ea7-427a-a8b8-aba56b311f83', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0aa9-7320-bc73-24ad7845ffb9"}', 'active', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.437719+00', '2026-11-22 04:20:36.411093+00', '2026-11-22 04:20:36.560672+00', NULL, '2036-11-19 04:20:36.437719+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.560672+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('fb0565b4-ea5d-40df-8245-a67ce8ee87bc', 'outboxd_poll', 0, '{"submissionId": "01a2017c-0a6f-73e6-88f6-f5a48b87c2ba"}', 'active', 1000000, 0, 0, false, NULL, 3600, 3600, NULL, NULL, NULL, NULL, '2026-11-22 04:20:36.585474+00', '2026-11-22 04:20:36.548443+00', '2026-11-22 04:20:36.594285+00', NULL, '2036-11-19 04:20:36.585474+00', NULL, NULL, 'standard', '2026-11-22 04:20:36.594285+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO pgboss.queue VALUES
	('outboxd_poll', 'standard', 1000000, 0, false, NULL, 3600, 315360000, 3600, NULL, false, 'job_common', 0, 1, 1, 0, 2, 0, 24, 0, 0, 0, NULL, NULL, '{1,0}', 10, false, NULL, '2026-11-22 04:20:39.891528+00', '2026-11-22 04:20:39.897237+00', '2026-11-22 04:20:31.42543+00', '2026-11-22 04:20:26.777535+00', '2026-11-22 04:20:26.777535+00');
INSERT INTO pgboss.version VALUES
	(43, NULL, '2026-11-22 04:20:26.786683+00', NULL, '2026-11-22 04:20:31.501492+00', NULL);
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES
	(1, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "done 0", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:31.339051+00', 'completed', '674b9cf7-2c8a-4b81-bb83-3bb6f8c146e6', NULL, NULL, '2026-11-22 04:20:31.991412+00'),
	(2, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "done 1", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:32.017691+00', 'completed', 'c176f590-6aaa-4b62-8bc5-973f9dc36d0c', NULL, NULL, '2026-11-22 04:20:32.345444+00'),
	(3, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "done 2", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:32.348066+00', 'completed', '1963614d-6a5f-42b5-a102-6fa6f567fe19', NULL, NULL, '2026-11-22 04:20:32.668544+00'),
	(4, 'data', 'K-1', '{"amount": 19.99, "field1": "value1", "field2": "by key", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:32.670453+00', 'completed', '3db67f73-9be0-4d25-b2f7-d05a7aae3f60', NULL, NULL, '2026-11-22 04:20:32.960011+00'),
	(5, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "unknown", "orderDate": "2026-11-20T10:00:00Z", "customerId": "UNKNOWN"}', '2026-11-22 04:20:32.987717+00', 'rejected', NULL, 'E001', 'the service answered 400 E001: Invalid customer: UNKNOWN was not found.', '2026-11-22 04:20:33.078541+00'),
	(6, 'data', NULL, '{"amount": 19.995, "field1": "value1", "field2": "cents", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:33.093324+00', 'rejected', NULL, NULL, 'total_amount (from amount) has 3 decimals, decimal(10,2) takes 2: "19.995"', '2026-11-22 04:20:33.102523+00'),
	(7, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "fail:E001", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:33.195268+00', 'failed', 'e28a7f38-3e99-4d51-aec1-89a4c0597e32', 'E001', 'the service processed it: failed with E001', '2026-11-22 04:20:33.534835+00'),
	(8, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "given up", "orderDate": "2026-11-20T10:00:00Z", "customerId": "X1"}', '2026-11-22 04:20:33.577917+00', 'discarded', NULL, 'E001', 'the service answered 400 E001: Invalid customer: X1 was not found.', '2026-11-22 04:20:35.463246+00'),
	(9, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "no answer", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:35.35972+00', 'uncertain', NULL, NULL, 'the connection was lost before the whole answer came (UND_ERR_SOCKET); it may or may not have arrived', '2026-11-22 04:20:35.463303+00'),
	(10, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "resolved", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:35.563276+00', 'completed', 'fda60c55-505e-4ff8-88ec-de0753d73c14', NULL, NULL, '2026-11-22 04:20:35.932564+00'),
	(11, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "under way 0", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:35.998838+00', 'accepted', 'e59dd539-3dce-4f36-a4e2-9dc5fd1b190f', NULL, NULL, '2026-11-22 04:20:36.092642+00'),
	(12, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "under way 1", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:36.058682+00', 'accepted', 'b78de336-17fe-4a36-a55c-40c443b30ad3', NULL, NULL, '2026-11-22 04:20:36.183677+00'),
	(13, 'data', 'K-2', '{"amount": 19.99, "field1": "value1", "field2": "under way 2", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:36.133625+00', 'accepted', '08e1f395-4701-4e83-bb2f-6da0485eea74', NULL, NULL, '2026-11-22 04:20:36.183693+00'),
	(14, 'data', 'K-3', '{"amount": 19.99, "field1": "value1", "field2": "behind", "orderDate": "2026-11-20T10:00:00Z", "customerId": "UNKNOWN"}', '2026-11-22 04:20:36.203584+00', 'rejected', NULL, 'E001', 'the service answered 400 E001: Invalid customer: UNKNOWN was not found.', '2026-11-22 04:20:36.326878+00'),
	(15, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "on the wire", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:36.53153+00', 'queued', NULL, NULL, NULL, '2026-11-22 04:20:36.563517+00'),
	(16, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "waits 0", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:39.854284+00', 'queued', NULL, NULL, NULL, '2026-11-22 04:20:39.921377+00'),
	(17, 'data', 'K-2', '{"amount": 19.99, "field1": "value1", "field2": "waits 1", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:39.92865+00', 'queued', NULL, NULL, NULL, '2026-11-22 04:20:39.976869+00'),
	(18, 'data', NULL, '{"amount": 19.99, "field1": "value1", "field2": "not captured", "orderDate": "2026-11-20T10:00:00Z", "customerId": "C-1"}', '2026-11-22 04:20:39.99351+00', 'new', NULL, NULL, NULL, NULL),
	(19, 'order', NULL, '{"items": [{"sku": "a", "quantity": 1}], "amount": 19.99, "field1": "value1", "field2": "not captured, an order", "orderDate": "2026-11-20T10:00:00Z", "customerId": "11111111-1111-4111-8111-111111111111"}', '2026-11-22 04:20:40.021897+00', 'new', NULL, NULL, NULL, NULL);
SELECT pg_catalog.setval('outboxd.migration_id_seq', 2, true);
SELECT pg_catalog.setval('outboxd.submission_event_id_seq', 51, true);
SELECT pg_catalog.setval('outboxd.submission_seq_seq', 17, true);
SELECT pg_catalog.setval('public.outbox_id_seq', 19, true);
ALTER TABLE ONLY outboxd.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.outbox_cursor
    ADD CONSTRAINT outbox_cursor_pkey PRIMARY KEY (outbox);
ALTER TABLE ONLY outboxd.pause
    ADD CONSTRAINT pause_pkey PRIMARY KEY (reason);
ALTER TABLE ONLY outboxd.slot
    ADD CONSTRAINT slot_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.submission_event
    ADD CONSTRAINT submission_event_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outboxd.submission
    ADD CONSTRAINT submission_outbox_id_key UNIQUE (outbox_id);
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
ALTER TABLE ONLY pgboss.queue_stats_20261122
    ADD CONSTRAINT queue_stats_20261122_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY pgboss.queue_stats_20261123
    ADD CONSTRAINT queue_stats_20261123_pkey PRIMARY KEY (id, captured_on);
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
CREATE INDEX submission_ended ON outboxd.submission USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX submission_event_submission ON outboxd.submission_event USING btree (submission_id, id);
CREATE INDEX submission_line ON outboxd.submission USING btree (key, seq) WHERE ((key IS NOT NULL) AND (state = ANY (ARRAY['queued'::text, 'sending'::text, 'uncertain'::text, 'failed'::text, 'rejected'::text])));
CREATE INDEX submission_person ON outboxd.submission USING btree (ended_at, seq) WHERE (state = ANY (ARRAY['failed'::text, 'rejected'::text, 'uncertain'::text]));
CREATE INDEX submission_polled ON outboxd.submission USING btree (poll_at) WHERE (job_id IS NOT NULL);
CREATE INDEX submission_ready ON outboxd.submission USING btree (due_at, seq) WHERE ((state = 'queued'::text) AND (NOT held));
CREATE INDEX submission_report ON outboxd.submission USING btree (seq) WHERE report_due;
CREATE INDEX submission_sending ON outboxd.submission USING btree (instance_id) WHERE (state = 'sending'::text);
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
CREATE INDEX queue_stats_20261122_name_captured_on_deferred_count_queued_idx ON pgboss.queue_stats_20261122 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX queue_stats_20261123_name_captured_on_deferred_count_queued_idx ON pgboss.queue_stats_20261123 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX warning_i1 ON pgboss.warning USING btree (created_on DESC);
CREATE INDEX outbox_new ON public.outbox USING btree (id) WHERE (status = 'new'::text);
ALTER INDEX pgboss.job_pkey ATTACH PARTITION pgboss.job_common_pkey;
ALTER INDEX pgboss.queue_stats_i1 ATTACH PARTITION pgboss.queue_stats_20261122_name_captured_on_deferred_count_queued_idx;
ALTER INDEX pgboss.queue_stats_pkey ATTACH PARTITION pgboss.queue_stats_20261122_pkey;
ALTER INDEX pgboss.queue_stats_i1 ATTACH PARTITION pgboss.queue_stats_20261123_name_captured_on_deferred_count_queued_idx;
ALTER INDEX pgboss.queue_stats_pkey ATTACH PARTITION pgboss.queue_stats_20261123_pkey;
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON outboxd.submission_event FOR EACH ROW EXECUTE FUNCTION outboxd.refuse_change();
CREATE TRIGGER count_inserted AFTER INSERT ON outboxd.submission REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION outboxd.count_inserted();
CREATE TRIGGER count_updated AFTER UPDATE ON outboxd.submission REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION outboxd.count_updated();
CREATE TRIGGER outbox_wakes_outboxd AFTER INSERT ON public.outbox FOR EACH STATEMENT EXECUTE FUNCTION public.outboxd_wake();
ALTER TABLE ONLY outboxd.submission_event
    ADD CONSTRAINT submission_event_submission_id_fkey FOREIGN KEY (submission_id) REFERENCES outboxd.submission(id);
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

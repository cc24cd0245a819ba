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
CREATE SCHEMA sandbox;
CREATE SCHEMA sandbox_queue;
CREATE TYPE sandbox_queue.job_state AS ENUM (
    'created',
    'retry',
    'active',
    'completed',
    'cancelled',
    'failed'
);
CREATE FUNCTION sandbox_queue.create_queue(queue_name text, options jsonb) RETURNS void
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
        INSERT INTO sandbox_queue.queue (
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
          sandbox_queue.job_now(),
          sandbox_queue.job_now()
        )
        ON CONFLICT DO NOTHING
        RETURNING created_on
      )
      SELECT created_on into queue_created_on from q;
      IF queue_created_on IS NULL OR options->>'partition' IS DISTINCT FROM 'true' THEN
        RETURN;
      END IF;
      EXECUTE format('CREATE TABLE sandbox_queue.%I (LIKE sandbox_queue.job INCLUDING DEFAULTS)', tablename);
      EXECUTE sandbox_queue.job_table_format($cmd$ALTER TABLE sandbox_queue.job ADD PRIMARY KEY (name, id)$cmd$, tablename);
      EXECUTE sandbox_queue.job_table_format($cmd$ALTER TABLE sandbox_queue.job ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES sandbox_queue.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED$cmd$, tablename);
      EXECUTE sandbox_queue.job_table_format($cmd$ALTER TABLE sandbox_queue.job ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES sandbox_queue.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED$cmd$, tablename);
      EXECUTE sandbox_queue.job_table_format($cmd$CREATE INDEX job_i11 ON sandbox_queue.job (name, priority DESC, created_on, start_after) WHERE state < 'active' AND NOT blocked$cmd$, tablename);
      EXECUTE sandbox_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i4 ON sandbox_queue.job (name, singleton_on, COALESCE(singleton_key, '')) WHERE state <> 'cancelled' AND singleton_on IS NOT NULL$cmd$, tablename);
      EXECUTE sandbox_queue.job_table_format($cmd$CREATE INDEX job_i7 ON sandbox_queue.job (name, group_id) WHERE state = 'active' AND group_id IS NOT NULL$cmd$, tablename);
      EXECUTE sandbox_queue.job_table_format($cmd$CREATE INDEX job_i9 ON sandbox_queue.job (name, id) WHERE blocking AND state = 'completed'$cmd$, tablename);
      EXECUTE sandbox_queue.job_table_format($cmd$CREATE INDEX job_i12 ON sandbox_queue.job (source_root_id) WHERE source_root_id IS NOT NULL$cmd$, tablename);
      IF options->>'policy' = 'short' THEN
        EXECUTE sandbox_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i1 ON sandbox_queue.job (name, COALESCE(singleton_key, '')) WHERE state = 'created' AND policy = 'short'$cmd$, tablename);
      ELSIF options->>'policy' = 'singleton' THEN
        EXECUTE sandbox_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i2 ON sandbox_queue.job (name, COALESCE(singleton_key, '')) WHERE state = 'active' AND policy = 'singleton'$cmd$, tablename);
      ELSIF options->>'policy' = 'stately' THEN
        EXECUTE sandbox_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i3 ON sandbox_queue.job (name, state, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'stately'$cmd$, tablename);
      ELSIF options->>'policy' = 'exclusive' THEN
        EXECUTE sandbox_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i6 ON sandbox_queue.job (name, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'exclusive'$cmd$, tablename);
      ELSIF options->>'policy' = 'key_strict_fifo' THEN
        EXECUTE sandbox_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i8 ON sandbox_queue.job (name, singleton_key) WHERE state IN ('active', 'retry', 'failed') AND policy = 'key_strict_fifo'$cmd$, tablename);
        EXECUTE sandbox_queue.job_table_format($cmd$CREATE INDEX job_i10 ON sandbox_queue.job (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE state < 'active' AND NOT blocked AND policy = 'key_strict_fifo'$cmd$, tablename);
        EXECUTE sandbox_queue.job_table_format($cmd$ALTER TABLE sandbox_queue.job ADD CONSTRAINT job_key_strict_fifo_singleton_key_check CHECK (NOT (policy = 'key_strict_fifo' AND singleton_key IS NULL))$cmd$, tablename);
      END IF;
      EXECUTE format('ALTER TABLE sandbox_queue.%I ADD CONSTRAINT cjc CHECK (name=%L)', tablename, queue_name);
      EXECUTE format('ALTER TABLE sandbox_queue.job ATTACH PARTITION sandbox_queue.%I FOR VALUES IN (%L)', tablename, queue_name);
    END;
    $_$;
CREATE FUNCTION sandbox_queue.delete_queue(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    DECLARE
      v_table varchar;
      v_partition bool;
    BEGIN
      
      SELECT table_name, partition
      FROM sandbox_queue.queue
      WHERE name = queue_name
      INTO v_table, v_partition;
      IF v_partition THEN
        EXECUTE format('DROP TABLE IF EXISTS sandbox_queue.%I', v_table);
      ELSE
        EXECUTE format('DELETE FROM sandbox_queue.%I WHERE name = %L', v_table, queue_name);
      END IF;
    
      DELETE FROM sandbox_queue.queue WHERE name = queue_name;
    END;
    $$;
CREATE FUNCTION sandbox_queue.job_now() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
      SELECT pg_catalog.now();
    $$;
CREATE FUNCTION sandbox_queue.job_table_format(command text, table_name text) RETURNS text
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
CREATE FUNCTION sandbox_queue.job_table_run(command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    DECLARE
      tbl RECORD;
    BEGIN
      IF queue_name IS NOT NULL THEN
        SELECT table_name INTO tbl_name FROM sandbox_queue.queue WHERE name = queue_name;
      END IF;
      IF tbl_name IS NOT NULL THEN
        EXECUTE sandbox_queue.job_table_format(command, tbl_name);
        RETURN;
      END IF;
      EXECUTE sandbox_queue.job_table_format(command, 'job_common');
      FOR tbl IN SELECT table_name FROM sandbox_queue.queue WHERE partition = true
      LOOP
        EXECUTE sandbox_queue.job_table_format(command, tbl.table_name);
      END LOOP;
    END;
    $$;
CREATE FUNCTION sandbox_queue.job_table_run_async(command_name text, version integer, command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    BEGIN
      IF queue_name IS NOT NULL THEN
        SELECT table_name INTO tbl_name FROM sandbox_queue.queue WHERE name = queue_name;
      END IF;
      IF tbl_name IS NOT NULL THEN
        INSERT INTO sandbox_queue.bam (name, version, status, queue, table_name, command)
        VALUES (
          command_name,
          version,
          'pending',
          queue_name,
          tbl_name,
          sandbox_queue.job_table_format(command, tbl_name)
        );
        RETURN;
      END IF;
      INSERT INTO sandbox_queue.bam (name, version, status, queue, table_name, command)
      SELECT
        command_name,
        version,
        'pending',
        NULL,
        'job_common',
        sandbox_queue.job_table_format(command, 'job_common')
      UNION ALL
      SELECT
        command_name,
        version,
        'pending',
        queue.name,
        queue.table_name,
        sandbox_queue.job_table_format(command, queue.table_name)
      FROM sandbox_queue.queue
      WHERE partition = true;
    END;
    $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE sandbox.faults (
    id bigint NOT NULL,
    spec jsonb NOT NULL
);
ALTER TABLE sandbox.faults ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sandbox.faults_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE sandbox.ledger (
    sequence bigint NOT NULL,
    arrived_at timestamp with time zone NOT NULL,
    endpoint text NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    client text,
    address text NOT NULL,
    idempotency_key text,
    body text,
    status integer,
    dropped boolean NOT NULL,
    counted boolean NOT NULL,
    fault_id bigint,
    transaction_id text,
    order_id uuid,
    CONSTRAINT ledger_check CHECK ((dropped = (status IS NULL))),
    CONSTRAINT ledger_check1 CHECK ((num_nonnulls(transaction_id, order_id) <= 1)),
    CONSTRAINT ledger_endpoint_check CHECK ((endpoint = ANY (ARRAY['token'::text, 'submit'::text, 'status'::text, 'order'::text, 'order_status'::text, 'other'::text])))
);
ALTER TABLE sandbox.ledger ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sandbox.ledger_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE sandbox.orders (
    id uuid NOT NULL,
    customer_id uuid NOT NULL,
    items json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    done_at timestamp with time zone NOT NULL
);
CREATE TABLE sandbox.state (
    name text NOT NULL,
    value jsonb NOT NULL
);
CREATE TABLE sandbox.steps (
    number integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE sandbox.transactions (
    id text NOT NULL,
    customer_id text NOT NULL,
    accepted_at timestamp with time zone NOT NULL,
    done_at timestamp with time zone NOT NULL,
    outcome text NOT NULL,
    error_code text,
    CONSTRAINT transactions_check CHECK (((outcome = 'failed'::text) = (error_code IS NOT NULL))),
    CONSTRAINT transactions_outcome_check CHECK ((outcome = ANY (ARRAY['completed'::text, 'failed'::text])))
);
CREATE TABLE sandbox_queue.bam (
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
CREATE TABLE sandbox_queue.job (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    data jsonb,
    state sandbox_queue.job_state DEFAULT 'created'::sandbox_queue.job_state NOT NULL,
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
CREATE TABLE sandbox_queue.job_common (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    data jsonb,
    state sandbox_queue.job_state DEFAULT 'created'::sandbox_queue.job_state NOT NULL,
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
CREATE TABLE sandbox_queue.job_dependency (
    child_name text NOT NULL,
    child_id uuid NOT NULL,
    parent_name text NOT NULL,
    parent_id uuid NOT NULL
);
CREATE TABLE sandbox_queue.queue (
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
CREATE TABLE sandbox_queue.queue_stats (
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
CREATE TABLE sandbox_queue.queue_stats_20261122 (
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
CREATE TABLE sandbox_queue.queue_stats_20261123 (
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
CREATE TABLE sandbox_queue.schedule (
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
CREATE TABLE sandbox_queue.subscription (
    event text NOT NULL,
    name text NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE sandbox_queue.version (
    version integer NOT NULL,
    cron_on timestamp with time zone,
    bam_on timestamp with time zone,
    flow_on timestamp with time zone,
    reindex_on timestamp with time zone,
    monitor_backoff_on timestamp with time zone
);
CREATE TABLE sandbox_queue.warning (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    type text NOT NULL,
    message text NOT NULL,
    data jsonb,
    created_on timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY sandbox_queue.job ATTACH PARTITION sandbox_queue.job_common DEFAULT;
ALTER TABLE ONLY sandbox_queue.queue_stats ATTACH PARTITION sandbox_queue.queue_stats_20261122 FOR VALUES FROM ('2026-11-22 00:00:00+00') TO ('2026-11-23 00:00:00+00');
ALTER TABLE ONLY sandbox_queue.queue_stats ATTACH PARTITION sandbox_queue.queue_stats_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');
INSERT INTO sandbox.faults OVERRIDING SYSTEM VALUE VALUES
	(1, '{"kind": "drop", "when": "after", "share": 1, "times": 1, "delayMs": 0, "endpoint": "submit"}'),
	(2, '{"kind": "delay", "when": "after", "share": 1, "times": 1, "delayMs": 60000, "endpoint": "submit"}');
INSERT INTO sandbox.ledger OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-22 04:20:31.479548+00', 'token', 'POST', '/oauth/token', NULL, '127.0.0.1', NULL, 'grant_type=client_credentials&client_id=sandbox&client_secret=***', 200, false, false, NULL, NULL, NULL),
	(2, '2026-11-22 04:20:31.567936+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"3ff3761f-85d7-4ad2-84e4-b5ffcb144199"', '{"customerId":"C-1","data":{"field1":"value1","field2":"done 0","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, '674b9cf7-2c8a-4b81-bb83-3bb6f8c146e6', NULL),
	(3, '2026-11-22 04:20:31.905045+00', 'status', 'GET', '/api/v1/data/674b9cf7-2c8a-4b81-bb83-3bb6f8c146e6', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(4, '2026-11-22 04:20:32.039068+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"60facd61-4ec3-4eae-8b43-19214ae161b1"', '{"customerId":"C-1","data":{"field1":"value1","field2":"done 1","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, 'c176f590-6aaa-4b62-8bc5-973f9dc36d0c', NULL),
	(5, '2026-11-22 04:20:32.186408+00', 'status', 'GET', '/api/v1/data/c176f590-6aaa-4b62-8bc5-973f9dc36d0c', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(6, '2026-11-22 04:20:32.280274+00', 'status', 'GET', '/api/v1/data/c176f590-6aaa-4b62-8bc5-973f9dc36d0c', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(7, '2026-11-22 04:20:32.400703+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"184bef05-d819-49c0-8f20-091f857571c5"', '{"customerId":"C-1","data":{"field1":"value1","field2":"done 2","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, '1963614d-6a5f-42b5-a102-6fa6f567fe19', NULL),
	(8, '2026-11-22 04:20:32.605077+00', 'status', 'GET', '/api/v1/data/1963614d-6a5f-42b5-a102-6fa6f567fe19', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(9, '2026-11-22 04:20:32.697783+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"64252d8b-84c5-49f9-bada-73dac331daba"', '{"customerId":"C-1","data":{"field1":"value1","field2":"by key","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, '3db67f73-9be0-4d25-b2f7-d05a7aae3f60', NULL),
	(10, '2026-11-22 04:20:32.868073+00', 'status', 'GET', '/api/v1/data/3db67f73-9be0-4d25-b2f7-d05a7aae3f60', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(11, '2026-11-22 04:20:32.923763+00', 'status', 'GET', '/api/v1/data/3db67f73-9be0-4d25-b2f7-d05a7aae3f60', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(12, '2026-11-22 04:20:33.012776+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"73574598-93bd-4d3a-801c-87591997a593"', '{"customerId":"UNKNOWN","data":{"field1":"value1","field2":"unknown","customer_id":"UNKNOWN","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 400, false, true, NULL, NULL, NULL),
	(13, '2026-11-22 04:20:33.205966+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"0d79c6ab-0ec4-4b44-a63f-7b0861c7f73c"', '{"customerId":"C-1","data":{"field1":"value1","field2":"fail:E001","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, 'e28a7f38-3e99-4d51-aec1-89a4c0597e32', NULL),
	(14, '2026-11-22 04:20:33.30576+00', 'status', 'GET', '/api/v1/data/e28a7f38-3e99-4d51-aec1-89a4c0597e32', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(15, '2026-11-22 04:20:33.382999+00', 'status', 'GET', '/api/v1/data/e28a7f38-3e99-4d51-aec1-89a4c0597e32', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(16, '2026-11-22 04:20:33.470933+00', 'status', 'GET', '/api/v1/data/e28a7f38-3e99-4d51-aec1-89a4c0597e32', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(17, '2026-11-22 04:20:33.596388+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"21595156-87f4-4317-a064-181db02bd303"', '{"customerId":"X1","data":{"field1":"value1","field2":"given up","customer_id":"X1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 400, false, true, NULL, NULL, NULL),
	(18, '2026-11-22 04:20:35.381623+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"20593d1c-4932-484f-90da-6f8e4c86a9d4"', '{"customerId":"C-1","data":{"field1":"value1","field2":"no answer","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', NULL, true, true, 1, '9d4037d9-2573-4e3e-825b-c5c9ac15edea', NULL),
	(19, '2026-11-22 04:20:35.579986+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"9804efc2-82fc-4287-9c13-de4eaa981ae1"', '{"customerId":"C-1","data":{"field1":"value1","field2":"resolved","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, 'fda60c55-505e-4ff8-88ec-de0753d73c14', NULL),
	(20, '2026-11-22 04:20:35.704231+00', 'status', 'GET', '/api/v1/data/fda60c55-505e-4ff8-88ec-de0753d73c14', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(21, '2026-11-22 04:20:35.76875+00', 'status', 'GET', '/api/v1/data/fda60c55-505e-4ff8-88ec-de0753d73c14', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(22, '2026-11-22 04:20:35.858923+00', 'status', 'GET', '/api/v1/data/fda60c55-505e-4ff8-88ec-de0753d73c14', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(23, '2026-11-22 04:20:36.019526+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"e02f6024-fa2c-4572-b349-a9e8e12e0627"', '{"customerId":"C-1","data":{"field1":"value1","field2":"under way 0","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, 'e59dd539-3dce-4f36-a4e2-9dc5fd1b190f', NULL),
	(24, '2026-11-22 04:20:36.094474+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"92b3b9e2-17d5-4281-96c7-9f45a0b6dc5c"', '{"customerId":"C-1","data":{"field1":"value1","field2":"under way 1","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, 'b78de336-17fe-4a36-a55c-40c443b30ad3', NULL),
	(25, '2026-11-22 04:20:36.127616+00', 'status', 'GET', '/api/v1/data/e59dd539-3dce-4f36-a4e2-9dc5fd1b190f', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(26, '2026-11-22 04:20:36.156945+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"78ba62d4-15ca-49b1-9f23-ca27621b3d92"', '{"customerId":"C-1","data":{"field1":"value1","field2":"under way 2","customer_id":"C-1","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 200, false, true, NULL, '08e1f395-4701-4e83-bb2f-6da0485eea74', NULL),
	(27, '2026-11-22 04:20:36.216723+00', 'status', 'GET', '/api/v1/data/b78de336-17fe-4a36-a55c-40c443b30ad3', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(28, '2026-11-22 04:20:36.241056+00', 'status', 'GET', '/api/v1/data/e59dd539-3dce-4f36-a4e2-9dc5fd1b190f', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(29, '2026-11-22 04:20:36.242379+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"1bcb836b-1275-4605-aed6-8d22862ee43c"', '{"customerId":"UNKNOWN","data":{"field1":"value1","field2":"behind","customer_id":"UNKNOWN","order_date":"2026-11-20T10:00:00Z","total_amount":19.99}}', 400, false, true, NULL, NULL, NULL),
	(30, '2026-11-22 04:20:36.287713+00', 'status', 'GET', '/api/v1/data/08e1f395-4701-4e83-bb2f-6da0485eea74', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(31, '2026-11-22 04:20:36.330183+00', 'status', 'GET', '/api/v1/data/e59dd539-3dce-4f36-a4e2-9dc5fd1b190f', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(32, '2026-11-22 04:20:36.327517+00', 'status', 'GET', '/api/v1/data/b78de336-17fe-4a36-a55c-40c443b30ad3', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(33, '2026-11-22 04:20:36.382585+00', 'status', 'GET', '/api/v1/data/08e1f395-4701-4e83-bb2f-6da0485eea74', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(34, '2026-11-22 04:20:36.427013+00', 'status', 'GET', '/api/v1/data/b78de336-17fe-4a36-a55c-40c443b30ad3', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(35, '2026-11-22 04:20:36.555657+00', 'status', 'GET', '/api/v1/data/e59dd539-3dce-4f36-a4e2-9dc5fd1b190f', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(36, '2026-11-22 04:20:36.593686+00', 'status', 'GET', '/api/v1/data/08e1f395-4701-4e83-bb2f-6da0485eea74', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL);
INSERT INTO sandbox.state VALUES
	('signing_key', '{"d": "C7u97DEuPnQlE8A_rsY9PT0lIfYknAImTvx9viUdPgw", "x": "oLhWD3YlmKRcxDkuVWUUpPg-swy8zp6knzfHNd89_Js", "crv": "Ed25519", "kty": "OKP"}'),
	('token_generation', '1'),
	('settings', '{"processingTime": "constant:3600"}');
INSERT INTO sandbox.steps VALUES
	(1, '2026-11-22 04:20:28.655591+00');
INSERT INTO sandbox.transactions VALUES
	('674b9cf7-2c8a-4b81-bb83-3bb6f8c146e6', 'C-1', '2026-11-22 04:20:31.589343+00', '2026-11-22 04:20:31.789343+00', 'completed', NULL),
	('c176f590-6aaa-4b62-8bc5-973f9dc36d0c', 'C-1', '2026-11-22 04:20:32.040773+00', '2026-11-22 04:20:32.240773+00', 'completed', NULL),
	('1963614d-6a5f-42b5-a102-6fa6f567fe19', 'C-1', '2026-11-22 04:20:32.402453+00', '2026-11-22 04:20:32.602453+00', 'completed', NULL),
	('3db67f73-9be0-4d25-b2f7-d05a7aae3f60', 'C-1', '2026-11-22 04:20:32.699425+00', '2026-11-22 04:20:32.899425+00', 'completed', NULL),
	('e28a7f38-3e99-4d51-aec1-89a4c0597e32', 'C-1', '2026-11-22 04:20:33.208817+00', '2026-11-22 04:20:33.408817+00', 'failed', 'E001'),
	('9d4037d9-2573-4e3e-825b-c5c9ac15edea', 'C-1', '2026-11-22 04:20:35.386168+00', '2026-11-22 04:20:35.586168+00', 'completed', NULL),
	('fda60c55-505e-4ff8-88ec-de0753d73c14', 'C-1', '2026-11-22 04:20:35.5828+00', '2026-11-22 04:20:35.7828+00', 'completed', NULL),
	('e59dd539-3dce-4f36-a4e2-9dc5fd1b190f', 'C-1', '2026-11-22 04:20:36.023155+00', '2026-11-22 05:20:36.023155+00', 'completed', NULL),
	('b78de336-17fe-4a36-a55c-40c443b30ad3', 'C-1', '2026-11-22 04:20:36.09881+00', '2026-11-22 05:20:36.09881+00', 'completed', NULL),
	('08e1f395-4701-4e83-bb2f-6da0485eea74', 'C-1', '2026-11-22 04:20:36.159725+00', '2026-11-22 05:20:36.159725+00', 'completed', NULL);
INSERT INTO sandbox_queue.queue VALUES
	('OrderCreated', 'standard', 2, 0, false, NULL, 900, 315360000, 604800, NULL, false, 'job_common', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, '2026-11-22 04:20:28.813557+00', '2026-11-22 04:20:28.813557+00');
INSERT INTO sandbox_queue.version VALUES
	(43, NULL, '2026-11-22 04:20:28.835783+00', NULL, NULL, NULL);
SELECT pg_catalog.setval('sandbox.faults_id_seq', 2, true);
SELECT pg_catalog.setval('sandbox.ledger_sequence_seq', 36, true);
ALTER TABLE ONLY sandbox.faults
    ADD CONSTRAINT faults_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sandbox.ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY sandbox.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sandbox.state
    ADD CONSTRAINT state_pkey PRIMARY KEY (name);
ALTER TABLE ONLY sandbox.steps
    ADD CONSTRAINT steps_pkey PRIMARY KEY (number);
ALTER TABLE ONLY sandbox.transactions
    ADD CONSTRAINT transactions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sandbox_queue.bam
    ADD CONSTRAINT bam_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sandbox_queue.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (name, id);
ALTER TABLE ONLY sandbox_queue.job_common
    ADD CONSTRAINT job_common_pkey PRIMARY KEY (name, id);
ALTER TABLE ONLY sandbox_queue.job_dependency
    ADD CONSTRAINT job_dependency_pkey PRIMARY KEY (child_name, child_id, parent_name, parent_id);
ALTER TABLE ONLY sandbox_queue.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (name);
ALTER TABLE ONLY sandbox_queue.queue_stats
    ADD CONSTRAINT queue_stats_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY sandbox_queue.queue_stats_20261122
    ADD CONSTRAINT queue_stats_20261122_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY sandbox_queue.queue_stats_20261123
    ADD CONSTRAINT queue_stats_20261123_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY sandbox_queue.schedule
    ADD CONSTRAINT schedule_pkey PRIMARY KEY (name, key);
ALTER TABLE ONLY sandbox_queue.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (event, name);
ALTER TABLE ONLY sandbox_queue.version
    ADD CONSTRAINT version_pkey PRIMARY KEY (version);
ALTER TABLE ONLY sandbox_queue.warning
    ADD CONSTRAINT warning_pkey PRIMARY KEY (id);
CREATE INDEX ledger_applied_key ON sandbox.ledger USING btree (idempotency_key) WHERE ((idempotency_key IS NOT NULL) AND ((transaction_id IS NOT NULL) OR (order_id IS NOT NULL)));
CREATE INDEX ledger_arrived ON sandbox.ledger USING btree (arrived_at);
CREATE UNIQUE INDEX job_common_i1 ON sandbox_queue.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state = 'created'::sandbox_queue.job_state) AND (policy = 'short'::text));
CREATE INDEX job_common_i10 ON sandbox_queue.job_common USING btree (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE ((state < 'active'::sandbox_queue.job_state) AND (NOT blocked) AND (policy = 'key_strict_fifo'::text));
CREATE INDEX job_common_i11 ON sandbox_queue.job_common USING btree (name, priority DESC, created_on, start_after) WHERE ((state < 'active'::sandbox_queue.job_state) AND (NOT blocked));
CREATE INDEX job_common_i12 ON sandbox_queue.job_common USING btree (source_root_id) WHERE (source_root_id IS NOT NULL);
CREATE UNIQUE INDEX job_common_i2 ON sandbox_queue.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state = 'active'::sandbox_queue.job_state) AND (policy = 'singleton'::text));
CREATE UNIQUE INDEX job_common_i3 ON sandbox_queue.job_common USING btree (name, state, COALESCE(singleton_key, ''::text)) WHERE ((state <= 'active'::sandbox_queue.job_state) AND (policy = 'stately'::text));
CREATE UNIQUE INDEX job_common_i4 ON sandbox_queue.job_common USING btree (name, singleton_on, COALESCE(singleton_key, ''::text)) WHERE ((state <> 'cancelled'::sandbox_queue.job_state) AND (singleton_on IS NOT NULL));
CREATE UNIQUE INDEX job_common_i6 ON sandbox_queue.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state <= 'active'::sandbox_queue.job_state) AND (policy = 'exclusive'::text));
CREATE INDEX job_common_i7 ON sandbox_queue.job_common USING btree (name, group_id) WHERE ((state = 'active'::sandbox_queue.job_state) AND (group_id IS NOT NULL));
CREATE UNIQUE INDEX job_common_i8 ON sandbox_queue.job_common USING btree (name, singleton_key) WHERE ((state = ANY (ARRAY['active'::sandbox_queue.job_state, 'retry'::sandbox_queue.job_state, 'failed'::sandbox_queue.job_state])) AND (policy = 'key_strict_fifo'::text));
CREATE INDEX job_common_i9 ON sandbox_queue.job_common USING btree (name, id) WHERE (blocking AND (state = 'completed'::sandbox_queue.job_state));
CREATE INDEX job_dep_parent_idx ON sandbox_queue.job_dependency USING btree (parent_name, parent_id);
CREATE INDEX queue_stats_i1 ON ONLY sandbox_queue.queue_stats USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX queue_stats_20261122_name_captured_on_deferred_count_queued_idx ON sandbox_queue.queue_stats_20261122 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX queue_stats_20261123_name_captured_on_deferred_count_queued_idx ON sandbox_queue.queue_stats_20261123 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX warning_i1 ON sandbox_queue.warning USING btree (created_on DESC);
ALTER INDEX sandbox_queue.job_pkey ATTACH PARTITION sandbox_queue.job_common_pkey;
ALTER INDEX sandbox_queue.queue_stats_i1 ATTACH PARTITION sandbox_queue.queue_stats_20261122_name_captured_on_deferred_count_queued_idx;
ALTER INDEX sandbox_queue.queue_stats_pkey ATTACH PARTITION sandbox_queue.queue_stats_20261122_pkey;
ALTER INDEX sandbox_queue.queue_stats_i1 ATTACH PARTITION sandbox_queue.queue_stats_20261123_name_captured_on_deferred_count_queued_idx;
ALTER INDEX sandbox_queue.queue_stats_pkey ATTACH PARTITION sandbox_queue.queue_stats_20261123_pkey;
ALTER TABLE ONLY sandbox_queue.job_common
    ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES sandbox_queue.queue(name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sandbox_queue.job_common
    ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES sandbox_queue.queue(name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sandbox_queue.queue
    ADD CONSTRAINT queue_dead_letter_fkey FOREIGN KEY (dead_letter) REFERENCES sandbox_queue.queue(name);
ALTER TABLE ONLY sandbox_queue.schedule
    ADD CONSTRAINT schedule_name_fkey FOREIGN KEY (name) REFERENCES sandbox_queue.queue(name) ON DELETE CASCADE;
ALTER TABLE ONLY sandbox_queue.subscription
    ADD CONSTRAINT subscription_name_fkey FOREIGN KEY (name) REFERENCES sandbox_queue.queue(name) ON DELETE CASCADE;

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
    done_at timestamp with time zone NOT NULL,
    held boolean DEFAULT false NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL,
    statuses jsonb,
    told integer DEFAULT 0 NOT NULL,
    client text DEFAULT ''::text NOT NULL,
    event_id uuid
);
CREATE TABLE sandbox.scripted_answers (
    record text NOT NULL,
    answered integer NOT NULL
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
    held boolean DEFAULT false NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL,
    statuses jsonb,
    told integer DEFAULT 0 NOT NULL,
    client text DEFAULT ''::text NOT NULL,
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
CREATE TABLE sandbox_queue.queue_stats_20261124 (
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
ALTER TABLE ONLY sandbox_queue.queue_stats ATTACH PARTITION sandbox_queue.queue_stats_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');
ALTER TABLE ONLY sandbox_queue.queue_stats ATTACH PARTITION sandbox_queue.queue_stats_20261124 FOR VALUES FROM ('2026-11-24 00:00:00+00') TO ('2026-11-25 00:00:00+00');
INSERT INTO sandbox.faults OVERRIDING SYSTEM VALUE VALUES
	(2, '{"kind": "delay", "when": "before", "share": 1, "times": 1, "delayMs": 50000, "endpoint": "submit"}');
INSERT INTO sandbox.ledger OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-23 18:00:04.993001+00', 'token', 'POST', '/oauth/token', 'sandbox', '127.0.0.1', NULL, 'grant_type=client_credentials&client_id=sandbox&client_secret=***', 200, false, false, NULL, NULL, NULL),
	(2, '2026-11-23 18:00:05.339585+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"86d3fc03-1145-4bfb-8d74-43113cde90c0"', '{"customerId":"UNKNOWN1","data":{"field1":"value1","field2":"unknown","customer_id":"UNKNOWN1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 400, false, true, NULL, NULL, NULL),
	(3, '2026-11-23 18:00:05.33557+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"b9214eb3-f1ce-415c-a516-9635d0f76b25"', '{"customerId":"C1","data":{"field1":"value1","field2":"done 0","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, '85a91a99-bbf1-4cf5-9cc0-a85bc23a41cc', NULL),
	(4, '2026-11-23 18:00:05.348826+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"768e5fe4-bd7a-4ae8-b082-c17937143f0c"', '{"customerId":"UNKNOWN2","data":{"field1":"value1","field2":"given up","customer_id":"UNKNOWN2","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 400, false, true, NULL, NULL, NULL),
	(5, '2026-11-23 18:00:05.347437+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"6e3cd6be-ad45-40e7-bced-a81079188906"', '{"customerId":"C1","data":{"field1":"value1","field2":"fail:E001","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, 'ab089ce7-5a5f-48d3-b80a-fe04293f3b00', NULL),
	(6, '2026-11-23 18:00:05.338693+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"202a0d5a-d62c-4bc7-a859-f7d614a8a317"', '{"customerId":"C1","data":{"field1":"value1","field2":"by key","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, 'd7f9d79c-f6fc-4464-a05b-70a8d2d032fc', NULL),
	(7, '2026-11-23 18:00:05.337443+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"d5c929d2-f370-4694-8121-8c82ce7c396c"', '{"customerId":"C1","data":{"field1":"value1","field2":"done 1","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, 'f5db35eb-d3ad-475a-a880-f635ce270e03', NULL),
	(8, '2026-11-23 18:00:05.338031+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"aea6f4bc-e167-4d42-923a-40ff8159c6e8"', '{"customerId":"C1","data":{"field1":"value1","field2":"done 2","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, '05f56d40-0849-46a4-998f-714f1e65f499', NULL),
	(9, '2026-11-23 18:00:09.088981+00', 'status', 'GET', '/api/v1/data/05f56d40-0849-46a4-998f-714f1e65f499', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(10, '2026-11-23 18:00:09.699285+00', 'status', 'GET', '/api/v1/data/85a91a99-bbf1-4cf5-9cc0-a85bc23a41cc', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(11, '2026-11-23 18:00:09.757714+00', 'status', 'GET', '/api/v1/data/d7f9d79c-f6fc-4464-a05b-70a8d2d032fc', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(12, '2026-11-23 18:00:09.756613+00', 'status', 'GET', '/api/v1/data/ab089ce7-5a5f-48d3-b80a-fe04293f3b00', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(13, '2026-11-23 18:00:09.7583+00', 'status', 'GET', '/api/v1/data/f5db35eb-d3ad-475a-a880-f635ce270e03', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(14, '2026-11-23 18:00:11.117906+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"205cdeda-0785-49e3-a59d-7d4c6e679379"', '{"customerId":"C1","data":{"field1":"value1","field2":"no answer","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', NULL, true, true, 1, '4c6dff76-e980-424b-9eb0-a6c30d27a05e', NULL),
	(15, '2026-11-23 18:00:11.340094+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"6e9e957b-e4ea-42c7-b362-a86858303161"', '{"customerId":"C1","data":{"field1":"value1","field2":"resolved","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', NULL, true, true, 1, '7d76c594-6047-41bc-a410-48809defdb0f', NULL),
	(16, '2026-11-23 18:00:12.864043+00', 'token', 'POST', '/oauth/token', 'sandbox', '127.0.0.1', NULL, 'grant_type=client_credentials&client_id=sandbox&client_secret=***', 200, false, false, NULL, NULL, NULL),
	(17, '2026-11-23 18:00:12.896698+00', 'status', 'GET', '/api/v1/data/7d76c594-6047-41bc-a410-48809defdb0f', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(18, '2026-11-23 18:00:13.530225+00', 'status', 'GET', '/api/v1/data/7d76c594-6047-41bc-a410-48809defdb0f', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(19, '2026-11-23 18:00:33.151075+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"34b84c18-0386-4f04-b83a-5d959c3aa2b1"', '{"customerId":"C1","data":{"field1":"value1","field2":"after the failover","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, '6752cabc-be33-4c4a-b238-7d97a8d0009e', NULL),
	(20, '2026-11-23 18:00:35.014281+00', 'status', 'GET', '/api/v1/data/6752cabc-be33-4c4a-b238-7d97a8d0009e', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(21, '2026-11-23 18:00:35.566112+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"cd0a2daa-6f01-49da-8ebc-1b8b921c32c9"', '{"customerId":"C1","data":{"field1":"value1","field2":"under way 0","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, '36664948-840c-4e88-935e-85beae45907c', NULL),
	(22, '2026-11-23 18:00:35.593666+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"fef83933-8f38-43af-9d4c-c1f2b49ed8b1"', '{"customerId":"C1","data":{"field1":"value1","field2":"under way 2","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, '0de4ba55-5a59-4668-be90-49387564620b', NULL),
	(23, '2026-11-23 18:00:35.592509+00', 'submit', 'POST', '/api/v1/data', 'sandbox', '127.0.0.1', '"65dfbbc4-0cf0-4fe9-a453-78bbcc17e310"', '{"customerId":"C1","data":{"field1":"value1","field2":"under way 1","customer_id":"C1","order_date":"2026-11-21T10:00:00Z","total_amount":12.50}}', 200, false, true, NULL, '14453e0e-1035-44e5-9864-478bd258341f', NULL),
	(24, '2026-11-23 18:00:37.254461+00', 'status', 'GET', '/api/v1/data/36664948-840c-4e88-935e-85beae45907c', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(25, '2026-11-23 18:00:37.350698+00', 'status', 'GET', '/api/v1/data/0de4ba55-5a59-4668-be90-49387564620b', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(26, '2026-11-23 18:00:37.443646+00', 'status', 'GET', '/api/v1/data/14453e0e-1035-44e5-9864-478bd258341f', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(27, '2026-11-23 18:00:38.082468+00', 'status', 'GET', '/api/v1/data/36664948-840c-4e88-935e-85beae45907c', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(28, '2026-11-23 18:00:38.120955+00', 'status', 'GET', '/api/v1/data/0de4ba55-5a59-4668-be90-49387564620b', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL),
	(29, '2026-11-23 18:00:38.490222+00', 'status', 'GET', '/api/v1/data/14453e0e-1035-44e5-9864-478bd258341f', 'sandbox', '127.0.0.1', NULL, '', 200, false, true, NULL, NULL, NULL);
INSERT INTO sandbox.state VALUES
	('serving', '1'),
	('clock', '{"base": "system", "offsetUs": 0}'),
	('client_settings', '{}'),
	('scenario', 'null'),
	('signing_key', '{"d": "4JrKMhaW6zYO_kT-vNaqiUcxo5TSAKYCLnlAxWqPL-4", "x": "tlsi69yHmya9BfZvwn91cT0sorhGr9mxQYeZIOxO1kA", "crv": "Ed25519", "kty": "OKP"}'),
	('token_generation', '1'),
	('token_generations', '{"sandbox": {"generation": 1, "fingerprint": "hbMgPL1vaYxEFE1PrbWk0X-YsGuT0Gv3kjuHNM09ID8"}}'),
	('settings', '{"processingTime": "constant:7000"}');
INSERT INTO sandbox.steps VALUES
	(1, '2026-11-23 17:59:48.844897+00'),
	(2, '2026-11-23 17:59:48.969778+00'),
	(3, '2026-11-23 17:59:48.975367+00'),
	(4, '2026-11-23 17:59:48.993145+00'),
	(5, '2026-11-23 17:59:49.001963+00'),
	(6, '2026-11-23 17:59:49.019854+00'),
	(7, '2026-11-23 17:59:49.047691+00');
INSERT INTO sandbox.transactions VALUES
	('85a91a99-bbf1-4cf5-9cc0-a85bc23a41cc', 'C1', '2026-11-23 18:00:05.348277+00', '2026-11-23 18:00:05.548277+00', 'completed', NULL, false, 0, NULL, 0, 'sandbox'),
	('ab089ce7-5a5f-48d3-b80a-fe04293f3b00', 'C1', '2026-11-23 18:00:05.381765+00', '2026-11-23 18:00:05.581765+00', 'failed', 'E001', false, 1, NULL, 0, 'sandbox'),
	('d7f9d79c-f6fc-4464-a05b-70a8d2d032fc', 'C1', '2026-11-23 18:00:05.386451+00', '2026-11-23 18:00:05.586451+00', 'completed', NULL, false, 2, NULL, 0, 'sandbox'),
	('f5db35eb-d3ad-475a-a880-f635ce270e03', 'C1', '2026-11-23 18:00:05.388604+00', '2026-11-23 18:00:05.588604+00', 'completed', NULL, false, 3, NULL, 0, 'sandbox'),
	('05f56d40-0849-46a4-998f-714f1e65f499', 'C1', '2026-11-23 18:00:05.415739+00', '2026-11-23 18:00:05.615739+00', 'completed', NULL, false, 4, NULL, 0, 'sandbox'),
	('4c6dff76-e980-424b-9eb0-a6c30d27a05e', 'C1', '2026-11-23 18:00:11.133401+00', '2026-11-23 18:00:11.333401+00', 'completed', NULL, false, 5, NULL, 0, 'sandbox'),
	('7d76c594-6047-41bc-a410-48809defdb0f', 'C1', '2026-11-23 18:00:11.349687+00', '2026-11-23 18:00:11.549687+00', 'completed', NULL, false, 6, NULL, 0, 'sandbox'),
	('6752cabc-be33-4c4a-b238-7d97a8d0009e', 'C1', '2026-11-23 18:00:33.234194+00', '2026-11-23 18:00:33.434194+00', 'completed', NULL, false, 7, NULL, 0, 'sandbox'),
	('36664948-840c-4e88-935e-85beae45907c', 'C1', '2026-11-23 18:00:35.568165+00', '2026-11-23 19:57:15.568165+00', 'completed', NULL, false, 8, NULL, 0, 'sandbox'),
	('0de4ba55-5a59-4668-be90-49387564620b', 'C1', '2026-11-23 18:00:35.661638+00', '2026-11-23 19:57:15.661638+00', 'completed', NULL, false, 9, NULL, 0, 'sandbox'),
	('14453e0e-1035-44e5-9864-478bd258341f', 'C1', '2026-11-23 18:00:35.682717+00', '2026-11-23 19:57:15.682717+00', 'completed', NULL, false, 10, NULL, 0, 'sandbox');
INSERT INTO sandbox_queue.queue VALUES
	('OrderCreated', 'standard', 2, 0, false, NULL, 900, 315360000, 604800, NULL, false, 'job_common', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, '2026-11-23 17:59:49.429396+00', '2026-11-23 17:59:49.429396+00');
INSERT INTO sandbox_queue.version VALUES
	(43, NULL, '2026-11-23 17:59:49.47808+00', NULL, NULL, NULL);
SELECT pg_catalog.setval('sandbox.faults_id_seq', 2, true);
SELECT pg_catalog.setval('sandbox.ledger_sequence_seq', 29, true);
ALTER TABLE ONLY sandbox.faults
    ADD CONSTRAINT faults_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sandbox.ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY sandbox.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id, client);
ALTER TABLE ONLY sandbox.scripted_answers
    ADD CONSTRAINT scripted_answers_pkey PRIMARY KEY (record);
ALTER TABLE ONLY sandbox.state
    ADD CONSTRAINT state_pkey PRIMARY KEY (name);
ALTER TABLE ONLY sandbox.steps
    ADD CONSTRAINT steps_pkey PRIMARY KEY (number);
ALTER TABLE ONLY sandbox.transactions
    ADD CONSTRAINT transactions_pkey PRIMARY KEY (id, client);
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
ALTER TABLE ONLY sandbox_queue.queue_stats_20261123
    ADD CONSTRAINT queue_stats_20261123_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY sandbox_queue.queue_stats_20261124
    ADD CONSTRAINT queue_stats_20261124_pkey PRIMARY KEY (id, captured_on);
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
CREATE INDEX orders_created ON sandbox.orders USING btree (created_at, "position", id, client);
CREATE INDEX orders_event ON sandbox.orders USING btree (event_id);
CREATE INDEX transactions_accepted ON sandbox.transactions USING btree (accepted_at, "position", id, client);
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
CREATE INDEX queue_stats_20261123_name_captured_on_deferred_count_queued_idx ON sandbox_queue.queue_stats_20261123 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX queue_stats_20261124_name_captured_on_deferred_count_queued_idx ON sandbox_queue.queue_stats_20261124 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX warning_i1 ON sandbox_queue.warning USING btree (created_on DESC);
ALTER INDEX sandbox_queue.job_pkey ATTACH PARTITION sandbox_queue.job_common_pkey;
ALTER INDEX sandbox_queue.queue_stats_i1 ATTACH PARTITION sandbox_queue.queue_stats_20261123_name_captured_on_deferred_count_queued_idx;
ALTER INDEX sandbox_queue.queue_stats_pkey ATTACH PARTITION sandbox_queue.queue_stats_20261123_pkey;
ALTER INDEX sandbox_queue.queue_stats_i1 ATTACH PARTITION sandbox_queue.queue_stats_20261124_name_captured_on_deferred_count_queued_idx;
ALTER INDEX sandbox_queue.queue_stats_pkey ATTACH PARTITION sandbox_queue.queue_stats_20261124_pkey;
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

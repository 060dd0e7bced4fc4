SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.access_answer (
    metalake_id bigint NOT NULL,
    user_id bigint NOT NULL,
    kind smallint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    preset text NOT NULL,
    asked_at bigint NOT NULL,
    reason text NOT NULL,
    answer text NOT NULL,
    answered_by text NOT NULL COLLATE pg_catalog."C",
    answered_at bigint NOT NULL,
    note text NOT NULL
);
CREATE TABLE public.access_grant (
    role_id bigint NOT NULL,
    object_id bigint NOT NULL,
    privilege smallint NOT NULL,
    object_kind smallint NOT NULL,
    allowed boolean NOT NULL
);
CREATE TABLE public.access_request (
    metalake_id bigint NOT NULL,
    user_id bigint NOT NULL,
    kind smallint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    preset text NOT NULL,
    asked_at bigint NOT NULL,
    reason text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.audit (
    id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    at bigint NOT NULL,
    user_name text NOT NULL COLLATE pg_catalog."C",
    user_id bigint,
    outcome text NOT NULL,
    change text NOT NULL,
    action text NOT NULL,
    kind text NOT NULL,
    object_id bigint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    new_path text NOT NULL,
    detail text NOT NULL,
    rights text NOT NULL,
    protocol text NOT NULL,
    operation text NOT NULL,
    status integer NOT NULL,
    request_id text NOT NULL COLLATE pg_catalog."C",
    client text NOT NULL,
    peer text NOT NULL,
    credential text NOT NULL,
    zone bigint,
    revision bigint,
    ordinal integer
);
CREATE TABLE public.audit_note (
    id bigint NOT NULL,
    zone bigint NOT NULL,
    actor text NOT NULL,
    request_id text NOT NULL,
    at bigint NOT NULL,
    payload text NOT NULL
);
CREATE TABLE public.audit_position (
    zone bigint NOT NULL,
    revision bigint NOT NULL
);
CREATE TABLE public.change (
    zone bigint NOT NULL,
    revision bigint NOT NULL,
    ordinal integer NOT NULL,
    operation text NOT NULL,
    kind smallint NOT NULL,
    node_id bigint NOT NULL,
    name_space text NOT NULL,
    old_parent bigint,
    old_name text COLLATE pg_catalog."C",
    new_parent bigint,
    new_name text COLLATE pg_catalog."C",
    owner_id bigint,
    actor text NOT NULL,
    request_id text NOT NULL,
    at bigint NOT NULL,
    payload text
);
CREATE TABLE public.clock (
    zone bigint NOT NULL,
    revision bigint NOT NULL,
    access_revision bigint NOT NULL,
    pruned_to bigint NOT NULL
);
CREATE TABLE public.column_attachment (
    object_id bigint NOT NULL,
    field_id bigint NOT NULL,
    attached_id bigint NOT NULL,
    kind smallint NOT NULL
);
CREATE TABLE public.column_statistic (
    object_id bigint NOT NULL,
    field_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    modified_by text,
    modified_at bigint
);
CREATE TABLE public.dependency (
    user_id bigint NOT NULL,
    used_id bigint NOT NULL
);
CREATE TABLE public.document (
    node_id bigint NOT NULL,
    version bigint NOT NULL,
    uuid text NOT NULL,
    location text NOT NULL COLLATE pg_catalog."C",
    metadata_location text NOT NULL COLLATE pg_catalog."C",
    body bytea NOT NULL,
    digest bigint
);
CREATE TABLE public.fileset_place (
    node_id bigint NOT NULL,
    location text NOT NULL COLLATE pg_catalog."C",
    managed boolean NOT NULL,
    going boolean NOT NULL
);
CREATE TABLE public.former_object (
    zone bigint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    name_space text NOT NULL,
    object_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    kind smallint NOT NULL,
    owner_id bigint,
    left_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    carried text NOT NULL
);
CREATE TABLE public.former_restriction (
    zone bigint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    object_id bigint NOT NULL,
    restriction text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    name_space text NOT NULL,
    terms text NOT NULL,
    set_by text NOT NULL,
    set_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.group_member (
    user_id bigint NOT NULL,
    group_id bigint NOT NULL,
    issued boolean DEFAULT false NOT NULL
);
CREATE TABLE public.idempotency (
    zone bigint NOT NULL,
    caller text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea NOT NULL,
    operation text NOT NULL,
    status integer NOT NULL,
    object_id bigint,
    body bytea,
    expires_at bigint NOT NULL
);
CREATE TABLE public.import_object (
    import_id bigint NOT NULL,
    old_id bigint NOT NULL,
    new_id bigint NOT NULL,
    kind smallint NOT NULL,
    catalog_id bigint NOT NULL,
    depth smallint NOT NULL,
    provider text NOT NULL,
    nests boolean NOT NULL
);
CREATE TABLE public.lance_version (
    node_id bigint NOT NULL,
    branch text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    scheme smallint NOT NULL,
    staged text NOT NULL,
    size bigint,
    e_tag text,
    metadata text NOT NULL,
    created_at bigint NOT NULL,
    settled boolean NOT NULL
);
CREATE SEQUENCE public.limnos_id
    START WITH 1000
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.lineage_column (
    target_id bigint NOT NULL,
    job_digest bytea NOT NULL,
    ordinal integer NOT NULL,
    source_id bigint NOT NULL,
    target_field_id integer NOT NULL,
    target_field text NOT NULL,
    source_field_id integer NOT NULL,
    source_field text NOT NULL,
    subtype text NOT NULL,
    direct boolean NOT NULL
);
CREATE TABLE public.lineage_dataset (
    id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    digest bytea NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL
);
CREATE TABLE public.lineage_edge (
    target_id bigint NOT NULL,
    job_digest bytea NOT NULL,
    source_id bigint NOT NULL,
    job_namespace text NOT NULL,
    job_name text NOT NULL,
    run text NOT NULL,
    parent text NOT NULL,
    at bigint NOT NULL,
    said_by text NOT NULL,
    said_at bigint NOT NULL,
    kinds text NOT NULL
);
CREATE TABLE public.maintenance_checkpoint (
    reader_id bigint NOT NULL,
    source text NOT NULL COLLATE pg_catalog."C",
    snapshot_id bigint NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE public.maintenance_finding (
    node_id bigint NOT NULL,
    kind text NOT NULL,
    catalog_id bigint NOT NULL,
    score bigint NOT NULL,
    reason text NOT NULL,
    figures text NOT NULL,
    version bigint NOT NULL,
    found_at bigint NOT NULL
);
CREATE TABLE public.maintenance_lease (
    node_id bigint NOT NULL,
    operation_id bigint NOT NULL,
    token_id bigint NOT NULL,
    holder text NOT NULL,
    expires_at bigint NOT NULL,
    commits bigint NOT NULL
);
CREATE TABLE public.maintenance_operation (
    id bigint NOT NULL,
    catalog_id bigint NOT NULL,
    node_id bigint NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    user_name text NOT NULL,
    policy text,
    result text,
    started_at bigint NOT NULL,
    ended_at bigint,
    bytes bigint,
    leased_at bigint
);
CREATE TABLE public.maintenance_orphan_check (
    node_id bigint NOT NULL,
    catalog_id bigint NOT NULL,
    epoch bigint NOT NULL,
    checked_at bigint NOT NULL,
    listed bigint NOT NULL,
    referenced bigint NOT NULL,
    candidates bigint NOT NULL,
    candidate_bytes bigint NOT NULL,
    blocked text,
    policy text
);
CREATE TABLE public.maintenance_orphan_file (
    node_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    modified_ms bigint NOT NULL,
    first_seen_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    waited_ms bigint NOT NULL,
    state smallint NOT NULL,
    reason text NOT NULL
);
CREATE TABLE public.maintenance_rewrite (
    operation_id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    priority bigint NOT NULL,
    asked_at bigint NOT NULL,
    due_at bigint NOT NULL,
    attempts bigint NOT NULL,
    options text NOT NULL
);
CREATE TABLE public.metalake_import (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    form text NOT NULL,
    keeps boolean NOT NULL,
    state text NOT NULL,
    record_count bigint NOT NULL,
    source text NOT NULL,
    metalake_id bigint NOT NULL,
    owner_id bigint NOT NULL,
    masked text NOT NULL,
    begun_by text NOT NULL,
    begun_at bigint NOT NULL,
    fed_at bigint NOT NULL
);
CREATE TABLE public.metrics_report (
    id bigint NOT NULL,
    node_id bigint NOT NULL,
    kind text NOT NULL,
    reporter text NOT NULL,
    at bigint NOT NULL,
    expires_at bigint NOT NULL,
    snapshot_id bigint,
    body bytea NOT NULL
);
CREATE TABLE public.model_alias (
    model_id bigint NOT NULL,
    alias text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL
);
CREATE TABLE public.model_version (
    model_id bigint NOT NULL,
    version bigint NOT NULL,
    comment text,
    properties text NOT NULL,
    uris text NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    modified_by text,
    modified_at bigint
);
CREATE TABLE public.name_change (
    catalog_id bigint NOT NULL,
    node_id bigint NOT NULL,
    parent_id bigint NOT NULL,
    old_name text NOT NULL COLLATE pg_catalog."C",
    new_name text NOT NULL COLLATE pg_catalog."C",
    path text,
    into_id bigint,
    step smallint NOT NULL
);
CREATE TABLE public.name_migration (
    catalog_id bigint NOT NULL,
    state text NOT NULL,
    separator text NOT NULL,
    replacement text NOT NULL,
    nests boolean NOT NULL,
    goes_on boolean NOT NULL,
    planned_to bigint NOT NULL,
    planned_by text NOT NULL,
    planned_at bigint NOT NULL
);
CREATE TABLE public.node (
    id bigint NOT NULL,
    zone bigint NOT NULL,
    parent_id bigint NOT NULL,
    kind smallint NOT NULL,
    name_space text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    format text NOT NULL,
    implicit boolean NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    modified_by text,
    modified_at bigint,
    revision bigint NOT NULL,
    deleted bigint NOT NULL,
    record bytea NOT NULL,
    folded text COLLATE pg_catalog."C"
);
CREATE TABLE public.node_seen (
    id text NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    started_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    clock_offset_ms bigint NOT NULL,
    failing text
);
CREATE TABLE public.owner (
    object_id bigint NOT NULL,
    principal_id bigint NOT NULL
);
CREATE TABLE public.password (
    user_name text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL,
    trust text NOT NULL,
    root_id bigint NOT NULL,
    changed_at bigint NOT NULL
);
CREATE TABLE public.pipeline_run (
    id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    pipeline_id bigint NOT NULL,
    version bigint NOT NULL,
    uuid text NOT NULL COLLATE pg_catalog."C",
    user_name text NOT NULL COLLATE pg_catalog."C",
    user_id bigint NOT NULL,
    state text NOT NULL,
    attempt integer NOT NULL,
    holder text NOT NULL,
    beat_at bigint NOT NULL,
    lease_ms bigint NOT NULL,
    parameters text NOT NULL,
    options text NOT NULL,
    progress text,
    message text,
    catalog_id bigint,
    revision bigint,
    started_at bigint NOT NULL,
    resumed_at bigint,
    ended_at bigint,
    phases text
);
CREATE TABLE public.pipeline_schedule (
    pipeline_id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    user_name text NOT NULL COLLATE pg_catalog."C",
    user_id bigint NOT NULL,
    trust text NOT NULL,
    terms text NOT NULL,
    files bytea NOT NULL,
    created_at bigint NOT NULL,
    due_at bigint NOT NULL,
    next_at bigint NOT NULL,
    paused boolean NOT NULL,
    reason text,
    job_id bigint,
    run_due_at bigint,
    attempts integer NOT NULL
);
CREATE TABLE public.pipeline_version (
    pipeline_id bigint NOT NULL,
    version bigint NOT NULL,
    digest text NOT NULL,
    declaration text NOT NULL,
    declared_by text NOT NULL,
    declared_at bigint NOT NULL
);
CREATE TABLE public.place (
    location text NOT NULL COLLATE pg_catalog."C",
    owner_id bigint NOT NULL,
    kind smallint NOT NULL,
    catalog_id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    state smallint NOT NULL,
    conflicting boolean NOT NULL,
    claimant_id bigint,
    since bigint NOT NULL,
    keys_until bigint,
    had_files boolean
);
CREATE TABLE public.policy_object (
    object_id bigint NOT NULL,
    policy_id bigint NOT NULL,
    attached_by bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.principal (
    id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    external_id text COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    modified_by text,
    modified_at bigint,
    deleted bigint NOT NULL,
    tokens_from bigint DEFAULT '0'::bigint NOT NULL,
    signed_in bigint
);
CREATE TABLE public.protection (
    node_id bigint NOT NULL,
    zone bigint NOT NULL,
    below boolean NOT NULL,
    set_by text NOT NULL,
    set_at bigint NOT NULL
);
CREATE TABLE public.restricted_read (
    directory text NOT NULL,
    user_name text NOT NULL,
    user_id bigint NOT NULL,
    table_id bigint NOT NULL,
    binding text NOT NULL,
    plan text NOT NULL,
    plans integer NOT NULL,
    bytes bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.restriction (
    object_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    zone bigint NOT NULL,
    terms text NOT NULL,
    set_by text NOT NULL,
    set_at bigint NOT NULL
);
CREATE TABLE public.role (
    id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    modified_by text,
    modified_at bigint,
    deleted bigint NOT NULL,
    record bytea NOT NULL
);
CREATE TABLE public.role_member (
    principal_id bigint NOT NULL,
    role_id bigint NOT NULL
);
CREATE TABLE public.run_finding (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    pipeline_id bigint NOT NULL,
    step text NOT NULL COLLATE pg_catalog."C",
    rule text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE public.run_step (
    run_id bigint NOT NULL,
    ordinal integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    reads text NOT NULL,
    output text NOT NULL,
    state text NOT NULL,
    attempt integer NOT NULL,
    row_count bigint,
    byte_count bigint,
    started_at bigint,
    ended_at bigint,
    message text,
    outputs text NOT NULL,
    inputs text NOT NULL,
    phases text
);
CREATE TABLE public.scan_plan (
    id text NOT NULL,
    user_name text NOT NULL,
    user_id bigint NOT NULL,
    table_id bigint NOT NULL,
    scan bytea NOT NULL,
    parts text NOT NULL,
    cancelled integer NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.search_lease (
    one smallint NOT NULL,
    holder text NOT NULL,
    leased_until bigint NOT NULL
);
CREATE TABLE public.search_position (
    zone bigint NOT NULL,
    epoch bigint NOT NULL,
    revision bigint NOT NULL,
    scan_after bigint,
    scan_folded text COLLATE pg_catalog."C",
    scan_id bigint
);
CREATE TABLE public.search_text (
    object_id bigint NOT NULL,
    zone bigint NOT NULL,
    name text NOT NULL,
    columns text NOT NULL,
    comment text NOT NULL,
    name_vector tsvector DEFAULT ''::tsvector NOT NULL,
    all_vector tsvector DEFAULT ''::tsvector NOT NULL
);
CREATE TABLE public.search_word (
    word text NOT NULL
);
CREATE TABLE public.setting_name (
    metalake_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.snapshot_pin (
    run_id bigint NOT NULL,
    name text NOT NULL,
    table_id bigint NOT NULL,
    snapshots text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.sqlpp_lock (
    catalog_id bigint NOT NULL,
    kind integer NOT NULL,
    dataverse text NOT NULL COLLATE pg_catalog."C",
    entity text NOT NULL COLLATE pg_catalog."C",
    token bigint NOT NULL,
    mode integer NOT NULL,
    wanted integer NOT NULL,
    holder text NOT NULL
);
CREATE TABLE public.sqlpp_lock_node (
    holder text NOT NULL,
    leased_until bigint NOT NULL
);
CREATE TABLE public.sqlpp_request (
    handle text NOT NULL,
    user_name text NOT NULL,
    user_id bigint NOT NULL,
    request_id text NOT NULL,
    client_context_id text NOT NULL,
    statement text NOT NULL,
    mode text NOT NULL,
    started_at bigint NOT NULL,
    holder text NOT NULL,
    alive_until bigint NOT NULL,
    state text NOT NULL,
    expires_at bigint NOT NULL,
    rows_count bigint NOT NULL,
    size bigint NOT NULL,
    outcome bytea NOT NULL,
    cancelled integer NOT NULL
);
CREATE TABLE public.sqlpp_result (
    handle text NOT NULL,
    number integer NOT NULL,
    body bytea NOT NULL
);
CREATE TABLE public.statistic (
    object_id bigint NOT NULL,
    partition_name text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    modified_by text,
    modified_at bigint
);
CREATE TABLE public.store (
    one smallint NOT NULL,
    epoch bigint NOT NULL,
    format_version integer NOT NULL,
    next_id bigint NOT NULL,
    separator text,
    authentication text
);
CREATE SEQUENCE public.store_one_seq
    AS smallint
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.store_one_seq OWNED BY public.store.one;
CREATE TABLE public.tag_object (
    object_id bigint NOT NULL,
    tag_id bigint NOT NULL
);
CREATE TABLE public.tag_value (
    object_id bigint NOT NULL,
    field_id bigint NOT NULL,
    tag_id bigint NOT NULL,
    value text NOT NULL,
    "position" integer NOT NULL
);
CREATE TABLE public.task (
    id bigint NOT NULL,
    kind text NOT NULL,
    payload text NOT NULL,
    created_at bigint NOT NULL,
    due_at bigint NOT NULL,
    attempts integer NOT NULL,
    leased_until bigint NOT NULL,
    progress text,
    error text,
    ended_at bigint,
    result text,
    holder text
);
CREATE TABLE public.template_job (
    id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    template_id bigint NOT NULL,
    uuid text NOT NULL COLLATE pg_catalog."C",
    user_name text NOT NULL COLLATE pg_catalog."C",
    user_id bigint NOT NULL,
    state text NOT NULL,
    holder text NOT NULL,
    beat_at bigint NOT NULL,
    lease_ms bigint NOT NULL,
    conf text NOT NULL,
    work text NOT NULL,
    message text,
    exit_code integer,
    stdout text NOT NULL,
    stderr text NOT NULL,
    stdout_bytes bigint NOT NULL,
    stderr_bytes bigint NOT NULL,
    queued_at bigint NOT NULL,
    started_at bigint,
    ended_at bigint
);
CREATE TABLE public.token (
    id bigint NOT NULL,
    user_name text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    secret_hash bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked boolean NOT NULL,
    trust text DEFAULT 'believed'::text NOT NULL,
    root_id bigint,
    purpose text DEFAULT 'api'::text NOT NULL,
    opened_by bigint,
    ends_at bigint,
    table_id bigint,
    second_user_id bigint DEFAULT '0'::bigint NOT NULL,
    signed_in_at bigint
);
CREATE TABLE public.trash (
    node_id bigint NOT NULL,
    zone bigint NOT NULL,
    parent_id bigint NOT NULL,
    dropped_by text NOT NULL,
    dropped_by_id bigint,
    dropped_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    purges boolean DEFAULT false NOT NULL
);
CREATE TABLE public.webhook (
    id bigint NOT NULL,
    metalake_id bigint NOT NULL,
    user_name text NOT NULL COLLATE pg_catalog."C",
    user_id bigint NOT NULL,
    url text NOT NULL,
    secret text NOT NULL,
    "position" text NOT NULL,
    created_at bigint NOT NULL,
    due_at bigint NOT NULL,
    leased_until bigint NOT NULL,
    holder text NOT NULL,
    attempts integer NOT NULL,
    stopped boolean NOT NULL,
    error text,
    delivered_at bigint
);
ALTER TABLE ONLY public.store ALTER COLUMN one SET DEFAULT nextval('public.store_one_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0068');
INSERT INTO public.change VALUES (0, 1, 0, 'create', 1, 1000, 'metalake', NULL, NULL, 0, 'lake', 1001, 'admin', 'bootstrap', 1795356984844, '{"origin":{},"rights":[{"action":"metalake_create","object_id":-1,"kind":"metalake","name":"lake","factors":[{"kind":"service-admin"}]}]}');
INSERT INTO public.change VALUES (1000, 1, 0, 'create', 2, 1002, 'catalog', NULL, NULL, 1000, 'main', 1001, 'admin', 'bootstrap', 1795356984864, '{"origin":{},"rights":[{"action":"catalog_create","object_id":1000,"kind":"metalake","name":"lake","factors":[{"kind":"owner","object_id":1000,"object_kind":"metalake","object_name":"lake"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1000, 2, 0, 'create', 2, 1003, 'catalog', NULL, NULL, 1000, 'lance', 1001, 'admin', 'bootstrap', 1795356984868, '{"origin":{},"rights":[{"action":"catalog_create","object_id":1000,"kind":"metalake","name":"lake","factors":[{"kind":"owner","object_id":1000,"object_kind":"metalake","object_name":"lake"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (0, 2, 0, 'create', 23, 1004, '', 0, 'admin', NULL, NULL, NULL, 'admin', 'bootstrap', 1795356984871, '{"origin":{},"rights":[{"action":"token_manage_others","object_id":0,"kind":"","name":"server","factors":[{"kind":"self"}]}]}');
INSERT INTO public.change VALUES (1000, 3, 0, 'create', 2, 1005, 'catalog', NULL, NULL, 1000, 'sales', 1001, 'admin', '1cda3341fc45000001', 1795356984875, '{"origin":{"protocol":"gravitino","operation":"create-catalog","credential":"basic"},"rights":[{"action":"catalog_create","object_id":1000,"kind":"metalake","name":"lake","factors":[{"kind":"owner","object_id":1000,"object_kind":"metalake","object_name":"lake"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1005, 1, 0, 'create', 3, 1006, 'namespace', NULL, NULL, 1005, 's', 1001, 'admin', '1cda3341fc45000002', 1795356984879, '{"origin":{"protocol":"gravitino","operation":"create-schema","credential":"basic"},"rights":[{"action":"namespace_create","object_id":1005,"kind":"catalog","name":"sales","factors":[{"kind":"owner","object_id":1005,"object_kind":"catalog","object_name":"sales"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1005, 2, 0, 'create', 4, 1007, 'table', NULL, NULL, 1006, 'orders', 1001, 'admin', '1cda3341fc45000003', 1795356984883, '{"origin":{"protocol":"iceberg","operation":"create-table","credential":"basic"},"rights":[{"action":"table_create","object_id":1006,"kind":"namespace","name":"sales.s","factors":[{"kind":"owner","object_id":1005,"object_kind":"catalog","object_name":"sales"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1005, 3, 0, 'create', 4, 1008, 'table', NULL, NULL, 1006, 'writes_into', 1001, 'admin', '1cda3341fc45000004', 1795356984888, '{"origin":{"protocol":"iceberg","operation":"create-table","credential":"basic"},"rights":[{"action":"table_create","object_id":1006,"kind":"namespace","name":"sales.s","factors":[{"kind":"owner","object_id":1005,"object_kind":"catalog","object_name":"sales"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1000, 4, 0, 'create', 2, 1009, 'catalog', NULL, NULL, 1000, 'rooted', 1001, 'admin', '1cda3341fc45000005', 1795356984891, '{"origin":{"protocol":"gravitino","operation":"create-catalog","credential":"basic"},"rights":[{"action":"catalog_create","object_id":1000,"kind":"metalake","name":"lake","factors":[{"kind":"owner","object_id":1000,"object_kind":"metalake","object_name":"lake"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1009, 1, 0, 'create', 3, 1010, 'namespace', NULL, NULL, 1009, 's', 1001, 'admin', '1cda3341fc45000006', 1795356984895, '{"origin":{"protocol":"gravitino","operation":"create-schema","credential":"basic"},"rights":[{"action":"namespace_create","object_id":1009,"kind":"catalog","name":"rooted","factors":[{"kind":"owner","object_id":1009,"object_kind":"catalog","object_name":"rooted"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1009, 2, 0, 'create', 4, 1011, 'table', NULL, NULL, 1010, 'old', 1001, 'admin', '1cda3341fc45000007', 1795356984898, '{"origin":{"protocol":"iceberg","operation":"create-table","credential":"basic"},"rights":[{"action":"table_create","object_id":1010,"kind":"namespace","name":"rooted.s","factors":[{"kind":"owner","object_id":1009,"object_kind":"catalog","object_name":"rooted"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1000, 5, 0, 'create', 2, 1012, 'catalog', NULL, NULL, 1000, 'files', 1001, 'admin', '1cda3341fc45000008', 1795356984901, '{"origin":{"protocol":"gravitino","operation":"create-catalog","credential":"basic"},"rights":[{"action":"catalog_create","object_id":1000,"kind":"metalake","name":"lake","factors":[{"kind":"owner","object_id":1000,"object_kind":"metalake","object_name":"lake"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1012, 1, 0, 'create', 3, 1013, 'namespace', NULL, NULL, 1012, 's', 1001, 'admin', '1cda3341fc45000009', 1795356984905, '{"origin":{"protocol":"gravitino","operation":"create-schema","credential":"basic"},"rights":[{"action":"namespace_create","object_id":1012,"kind":"catalog","name":"files","factors":[{"kind":"owner","object_id":1012,"object_kind":"catalog","object_name":"files"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1012, 2, 0, 'create', 6, 1014, 'fileset', NULL, NULL, 1013, 'over', 1001, 'admin', '1cda3341fc4500000a', 1795356984908, '{"origin":{"protocol":"gravitino","operation":"create-fileset","credential":"basic"},"rights":[{"action":"fileset_create","object_id":1013,"kind":"namespace","name":"files.s","factors":[{"kind":"owner","object_id":1012,"object_kind":"catalog","object_name":"files"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1012, 3, 0, 'create', 6, 1015, 'fileset', NULL, NULL, 1013, 'apart', 1001, 'admin', '1cda3341fc4500000b', 1795356984913, '{"origin":{"protocol":"gravitino","operation":"create-fileset","credential":"basic"},"rights":[{"action":"fileset_create","object_id":1013,"kind":"namespace","name":"files.s","factors":[{"kind":"owner","object_id":1012,"object_kind":"catalog","object_name":"files"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1000, 6, 0, 'create', 2, 1016, 'catalog', NULL, NULL, 1000, 'shown', 1001, 'admin', '1cda3341fc4500000c', 1795356984919, '{"origin":{"protocol":"gravitino","operation":"create-catalog","credential":"basic"},"rights":[{"action":"catalog_create","object_id":1000,"kind":"metalake","name":"lake","factors":[{"kind":"owner","object_id":1000,"object_kind":"metalake","object_name":"lake"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (0, 3, 0, 'create', 1, 1017, 'metalake', NULL, NULL, 0, 'pond', 1018, 'admin', '1cda3341fc4500000d', 1795356984922, '{"origin":{"protocol":"gravitino","operation":"create-metalake","credential":"basic"},"rights":[{"action":"metalake_create","object_id":-1,"kind":"metalake","name":"pond","factors":[{"kind":"service-admin"}]}]}');
INSERT INTO public.change VALUES (1017, 1, 0, 'create', 2, 1019, 'catalog', NULL, NULL, 1017, 'ice', 1018, 'admin', '1cda3341fc4500000e', 1795356984934, '{"origin":{"protocol":"gravitino","operation":"create-catalog","credential":"basic"},"rights":[{"action":"catalog_create","object_id":1017,"kind":"metalake","name":"pond","factors":[{"kind":"owner","object_id":1017,"object_kind":"metalake","object_name":"pond"}]}],"user_id":1018}');
INSERT INTO public.change VALUES (1019, 1, 0, 'create', 3, 1020, 'namespace', NULL, NULL, 1019, 's', 1018, 'admin', '1cda3341fc4500000f', 1795356984943, '{"origin":{"protocol":"gravitino","operation":"create-schema","credential":"basic"},"rights":[{"action":"namespace_create","object_id":1019,"kind":"catalog","name":"ice","factors":[{"kind":"owner","object_id":1019,"object_kind":"catalog","object_name":"ice"}]}],"user_id":1018}');
INSERT INTO public.change VALUES (1000, 7, 0, 'create', 2, 1021, 'catalog', NULL, NULL, 1000, 'both', 1001, 'admin', '1cda3341fc45000010', 1795356984955, '{"origin":{"protocol":"gravitino","operation":"create-catalog","credential":"basic"},"rights":[{"action":"catalog_create","object_id":1000,"kind":"metalake","name":"lake","factors":[{"kind":"owner","object_id":1000,"object_kind":"metalake","object_name":"lake"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1021, 1, 0, 'create', 3, 1022, 'namespace', NULL, NULL, 1021, 's', 1001, 'admin', '1cda3341fc45000011', 1795356984964, '{"origin":{"protocol":"gravitino","operation":"create-schema","credential":"basic"},"rights":[{"action":"namespace_create","object_id":1021,"kind":"catalog","name":"both","factors":[{"kind":"owner","object_id":1021,"object_kind":"catalog","object_name":"both"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1021, 2, 0, 'create', 4, 1023, 'table', NULL, NULL, 1022, 'mine', 1001, 'admin', '1cda3341fc45000012', 1795356984971, '{"origin":{"protocol":"iceberg","operation":"create-table","credential":"basic"},"rights":[{"action":"table_create","object_id":1022,"kind":"namespace","name":"both.s","factors":[{"kind":"owner","object_id":1021,"object_kind":"catalog","object_name":"both"}]}],"user_id":1001}');
INSERT INTO public.change VALUES (1019, 2, 0, 'create', 4, 1024, 'table', NULL, NULL, 1020, 'theirs', 1018, 'admin', '1cda3341fc45000013', 1795356985023, '{"origin":{"protocol":"iceberg","operation":"create-table","credential":"basic"},"rights":[{"action":"table_create","object_id":1020,"kind":"namespace","name":"ice.s","factors":[{"kind":"owner","object_id":1019,"object_kind":"catalog","object_name":"ice"}]}],"user_id":1018}');
INSERT INTO public.change VALUES (1000, 8, 0, 'alter', 2, 1009, 'catalog', NULL, NULL, NULL, NULL, NULL, 'admin', '1cda3341fc45000014', 1795356985037, '{"origin":{"protocol":"gravitino","operation":"alter-catalog","credential":"basic"},"rights":[{"action":"catalog_alter","object_id":1009,"kind":"catalog","name":"rooted","factors":[{"kind":"owner","object_id":1009,"object_kind":"catalog","object_name":"rooted"}]}],"user_id":1001}');
INSERT INTO public.clock VALUES (1002, 0, 0, 0);
INSERT INTO public.clock VALUES (1003, 0, 0, 0);
INSERT INTO public.clock VALUES (1005, 3, 0, 0);
INSERT INTO public.clock VALUES (1009, 2, 0, 0);
INSERT INTO public.clock VALUES (1012, 3, 0, 0);
INSERT INTO public.clock VALUES (1016, 0, 0, 0);
INSERT INTO public.clock VALUES (0, 3, 2, 0);
INSERT INTO public.clock VALUES (1017, 1, 0, 0);
INSERT INTO public.clock VALUES (1021, 2, 0, 0);
INSERT INTO public.clock VALUES (1019, 2, 0, 0);
INSERT INTO public.clock VALUES (1000, 8, 8, 0);
INSERT INTO public.document VALUES (1007, 1, '01a2039d-8632-7896-8d1a-f06e8d8356f8', 'file:///tmp/limnos-places-XXXXXXXX/sales/orders', 'file:///tmp/limnos-places-XXXXXXXX/sales/orders/metadata/00000-01a2039d-8632-7acf-b8d5-7944389b33f5.metadata.json', '\x7b22666f726d61742d76657273696f6e223a322c227461626c652d75756964223a2230316132303339642d383633322d373839362d386431612d663036653864383335366638222c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f73616c65732f6f7264657273222c226c6173742d73657175656e63652d6e756d626572223a302c226c6173742d757064617465642d6d73223a313739353335363938343838322c226c6173742d636f6c756d6e2d6964223a322c2263757272656e742d736368656d612d6964223a302c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2264656661756c742d737065632d6964223a302c22706172746974696f6e2d7370656373223a5b7b22737065632d6964223a302c226669656c6473223a5b5d7d5d2c226c6173742d706172746974696f6e2d6964223a3939392c2264656661756c742d736f72742d6f726465722d6964223a302c22736f72742d6f7264657273223a5b7b226f726465722d6964223a302c226669656c6473223a5b5d7d5d2c2270726f70657274696573223a7b2277726974652e706172717565742e636f6d7072657373696f6e2d636f646563223a227a737464227d2c2263757272656e742d736e617073686f742d6964223a2d312c2272656673223a7b7d2c22736e617073686f7473223a5b5d2c2273746174697374696373223a5b5d2c22706172746974696f6e2d73746174697374696373223a5b5d2c22736e617073686f742d6c6f67223a5b5d2c226d657461646174612d6c6f67223a5b5d7d', NULL);
INSERT INTO public.document VALUES (1008, 1, '01a2039d-8637-7745-b989-346ab135d9c0', 'file:///tmp/limnos-places-XXXXXXXX/sales/own', 'file:///tmp/limnos-places-XXXXXXXX/sales/own/metadata/00000-01a2039d-8637-7ec1-93ed-3cf21ef02118.metadata.json', '\x7b22666f726d61742d76657273696f6e223a322c227461626c652d75756964223a2230316132303339642d383633372d373734352d623938392d333436616231333564396330222c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f73616c65732f6f776e222c226c6173742d73657175656e63652d6e756d626572223a302c226c6173742d757064617465642d6d73223a313739353335363938343838372c226c6173742d636f6c756d6e2d6964223a322c2263757272656e742d736368656d612d6964223a302c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2264656661756c742d737065632d6964223a302c22706172746974696f6e2d7370656373223a5b7b22737065632d6964223a302c226669656c6473223a5b5d7d5d2c226c6173742d706172746974696f6e2d6964223a3939392c2264656661756c742d736f72742d6f726465722d6964223a302c22736f72742d6f7264657273223a5b7b226f726465722d6964223a302c226669656c6473223a5b5d7d5d2c2270726f70657274696573223a7b2277726974652e706172717565742e636f6d7072657373696f6e2d636f646563223a227a737464222c2277726974652e646174612e70617468223a2266696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f73616c65732f6f72646572732f64617461227d2c2263757272656e742d736e617073686f742d6964223a2d312c2272656673223a7b7d2c22736e617073686f7473223a5b5d2c2273746174697374696373223a5b5d2c22706172746974696f6e2d73746174697374696373223a5b5d2c22736e617073686f742d6c6f67223a5b5d2c226d657461646174612d6c6f67223a5b5d7d', NULL);
INSERT INTO public.document VALUES (1011, 1, '01a2039d-8641-7a17-8fd5-3e02141f82f7', 'file:///tmp/limnos-places-XXXXXXXX/rooted/old', 'file:///tmp/limnos-places-XXXXXXXX/rooted/old/metadata/00000-01a2039d-8640-7233-a51c-4da1f762f243.metadata.json', '\x7b22666f726d61742d76657273696f6e223a322c227461626c652d75756964223a2230316132303339642d383634312d376131372d386664352d336530323134316638326637222c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f726f6f7465642f6f6c64222c226c6173742d73657175656e63652d6e756d626572223a302c226c6173742d757064617465642d6d73223a313739353335363938343839372c226c6173742d636f6c756d6e2d6964223a322c2263757272656e742d736368656d612d6964223a302c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2264656661756c742d737065632d6964223a302c22706172746974696f6e2d7370656373223a5b7b22737065632d6964223a302c226669656c6473223a5b5d7d5d2c226c6173742d706172746974696f6e2d6964223a3939392c2264656661756c742d736f72742d6f726465722d6964223a302c22736f72742d6f7264657273223a5b7b226f726465722d6964223a302c226669656c6473223a5b5d7d5d2c2270726f70657274696573223a7b2277726974652e706172717565742e636f6d7072657373696f6e2d636f646563223a227a737464227d2c2263757272656e742d736e617073686f742d6964223a2d312c2272656673223a7b7d2c22736e617073686f7473223a5b5d2c2273746174697374696373223a5b5d2c22706172746974696f6e2d73746174697374696373223a5b5d2c22736e617073686f742d6c6f67223a5b5d2c226d657461646174612d6c6f67223a5b5d7d', NULL);
INSERT INTO public.document VALUES (1023, 1, '01a2039d-868b-77ec-987f-4dd0126f7ed0', 'file:///tmp/limnos-places-XXXXXXXX/both/mine', 'file:///tmp/limnos-places-XXXXXXXX/both/mine/metadata/00000-01a2039d-868a-7f9b-9bf9-afe37a04038f.metadata.json', '\x7b22666f726d61742d76657273696f6e223a322c227461626c652d75756964223a2230316132303339642d383638622d373765632d393837662d346464303132366637656430222c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f626f74682f6d696e65222c226c6173742d73657175656e63652d6e756d626572223a302c226c6173742d757064617465642d6d73223a313739353335363938343937312c226c6173742d636f6c756d6e2d6964223a322c2263757272656e742d736368656d612d6964223a302c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2264656661756c742d737065632d6964223a302c22706172746974696f6e2d7370656373223a5b7b22737065632d6964223a302c226669656c6473223a5b5d7d5d2c226c6173742d706172746974696f6e2d6964223a3939392c2264656661756c742d736f72742d6f726465722d6964223a302c22736f72742d6f7264657273223a5b7b226f726465722d6964223a302c226669656c6473223a5b5d7d5d2c2270726f70657274696573223a7b2277726974652e706172717565742e636f6d7072657373696f6e2d636f646563223a227a737464227d2c2263757272656e742d736e617073686f742d6964223a2d312c2272656673223a7b7d2c22736e617073686f7473223a5b5d2c2273746174697374696373223a5b5d2c22706172746974696f6e2d73746174697374696373223a5b5d2c22736e617073686f742d6c6f67223a5b5d2c226d657461646174612d6c6f67223a5b5d7d', NULL);
INSERT INTO public.document VALUES (1024, 1, '01a2039d-86bc-78e2-acfe-58b81e70c593', 'file:///tmp/limnos-places-XXXXXXXX/both/theirs', 'file:///tmp/limnos-places-XXXXXXXX/both/theirs/metadata/00000-01a2039d-86bb-7868-806d-5c68bdbf797f.metadata.json', '\x7b22666f726d61742d76657273696f6e223a322c227461626c652d75756964223a2230316132303339642d383662632d373865322d616366652d353862383165373063353933222c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f626f74682f746865697273222c226c6173742d73657175656e63652d6e756d626572223a302c226c6173742d757064617465642d6d73223a313739353335363938353032302c226c6173742d636f6c756d6e2d6964223a322c2263757272656e742d736368656d612d6964223a302c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2264656661756c742d737065632d6964223a302c22706172746974696f6e2d7370656373223a5b7b22737065632d6964223a302c226669656c6473223a5b5d7d5d2c226c6173742d706172746974696f6e2d6964223a3939392c2264656661756c742d736f72742d6f726465722d6964223a302c22736f72742d6f7264657273223a5b7b226f726465722d6964223a302c226669656c6473223a5b5d7d5d2c2270726f70657274696573223a7b2277726974652e706172717565742e636f6d7072657373696f6e2d636f646563223a227a737464227d2c2263757272656e742d736e617073686f742d6964223a2d312c2272656673223a7b7d2c22736e617073686f7473223a5b5d2c2273746174697374696373223a5b5d2c22706172746974696f6e2d73746174697374696373223a5b5d2c22736e617073686f742d6c6f67223a5b5d2c226d657461646174612d6c6f67223a5b5d7d', NULL);
INSERT INTO public.fileset_place VALUES (1014, 'file:///tmp/limnos-places-XXXXXXXX/sales/orders', false, false);
INSERT INTO public.fileset_place VALUES (1015, 'file:///tmp/limnos-places-XXXXXXXX/free/apart', false, false);
INSERT INTO public.node VALUES (1000, 0, 0, 1, 'metalake', 'lake', '', false, 'admin', 1795356984844, NULL, NULL, 1, 0, '\x0a02080112134d616465206f6e2066697273742073746172742001', 'lake');
INSERT INTO public.node VALUES (1002, 1000, 1000, 2, 'catalog', 'main', '', false, 'admin', 1795356984864, NULL, NULL, 1, 0, '\x0a02080112134d616465206f6e2066697273742073746172741a430a0977617265686f757365123666696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f646174612f77617265686f7573652f6d61696e2001280132116c616b65686f7573652d69636562657267', 'main');
INSERT INTO public.node VALUES (1003, 1000, 1000, 2, 'catalog', 'lance', '', false, 'admin', 1795356984868, NULL, NULL, 2, 0, '\x0a02080112134d616465206f6e2066697273742073746172741a440a0977617265686f757365123766696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f646174612f77617265686f7573652f6c616e63652001280132116c616b65686f7573652d67656e65726963', 'lance');
INSERT INTO public.node VALUES (1005, 1000, 1000, 2, 'catalog', 'sales', '', false, 'admin', 1795356984875, NULL, NULL, 3, 0, '\x0a0208011a200a1463726564656e7469616c2d70726f766964657273120873332d746f6b656e1a210a1973332d72656d6f74652d7369676e696e672d656e61626c65641204747275651a320a0b73332d726f6c652d61726e122361726e3a6177733a69616d3a3a3132333435363738393031323a726f6c652f6c616b651a350a0977617265686f757365122866696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f73616c65732001280132116c616b65686f7573652d69636562657267', 'sales');
INSERT INTO public.node VALUES (1006, 1005, 1005, 3, 'namespace', 's', '', false, 'admin', 1795356984879, NULL, NULL, 1, 0, '\x0a020801', 's');
INSERT INTO public.node VALUES (1007, 1005, 1006, 4, 'table', 'orders', 'iceberg', false, 'admin', 1795356984883, NULL, NULL, 2, 0, '\x0a020801', 'orders');
INSERT INTO public.node VALUES (1008, 1005, 1006, 4, 'table', 'writes_into', 'iceberg', false, 'admin', 1795356984888, NULL, NULL, 3, 0, '\x0a020801', 'writes_into');
INSERT INTO public.node VALUES (1009, 1000, 1000, 2, 'catalog', 'rooted', '', false, 'admin', 1795356984891, 'admin', 1795356985037, 8, 0, '\x0a0208011a200a1463726564656e7469616c2d70726f766964657273120873332d746f6b656e1a210a1973332d72656d6f74652d7369676e696e672d656e61626c65641204747275651a320a0b73332d726f6c652d61726e122361726e3a6177733a69616d3a3a3132333435363738393031323a726f6c652f6c616b651a3a0a0977617265686f757365122d66696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f726f6f7465642f6f6c642001280132116c616b65686f7573652d69636562657267', 'rooted');
INSERT INTO public.node VALUES (1010, 1009, 1009, 3, 'namespace', 's', '', false, 'admin', 1795356984895, NULL, NULL, 1, 0, '\x0a020801', 's');
INSERT INTO public.node VALUES (1011, 1009, 1010, 4, 'table', 'old', 'iceberg', false, 'admin', 1795356984898, NULL, NULL, 2, 0, '\x0a020801', 'old');
INSERT INTO public.node VALUES (1012, 1000, 1000, 2, 'catalog', 'files', '', false, 'admin', 1795356984901, NULL, NULL, 5, 0, '\x0a0208011a370a11616c6c6f7765642d6c6f636174696f6e73122266696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858581a200a1463726564656e7469616c2d70726f766964657273120873332d746f6b656e1a210a1973332d72656d6f74652d7369676e696e672d656e61626c65641204747275651a320a0b73332d726f6c652d61726e122361726e3a6177733a69616d3a3a3132333435363738393031323a726f6c652f6c616b6520012802320766696c65736574', 'files');
INSERT INTO public.node VALUES (1013, 1012, 1012, 3, 'namespace', 's', '', false, 'admin', 1795356984905, NULL, NULL, 1, 0, '\x0a020801', 's');
INSERT INTO public.node VALUES (1014, 1012, 1013, 6, 'fileset', 'over', '', false, 'admin', 1795356984908, NULL, NULL, 2, 0, '\x0a0208011a200a1564656661756c742d6c6f636174696f6e2d6e616d651207756e6b6e6f776e20012a3a0a07756e6b6e6f776e122f66696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f73616c65732f6f7264657273', 'over');
INSERT INTO public.node VALUES (1015, 1012, 1013, 6, 'fileset', 'apart', '', false, 'admin', 1795356984913, NULL, NULL, 3, 0, '\x0a0208011a200a1564656661756c742d6c6f636174696f6e2d6e616d651207756e6b6e6f776e20012a380a07756e6b6e6f776e122d66696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f667265652f6170617274', 'apart');
INSERT INTO public.node VALUES (1016, 1000, 1000, 2, 'catalog', 'shown', '', false, 'admin', 1795356984919, NULL, NULL, 6, 0, '\x0a0208011a3b0a0f6c616e63652d6469726563746f7279122866696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f73616c65732001280132116c616b65686f7573652d67656e65726963', 'shown');
INSERT INTO public.node VALUES (1017, 0, 0, 1, 'metalake', 'pond', '', false, 'admin', 1795356984922, NULL, NULL, 3, 0, '\x0a0208012001', 'pond');
INSERT INTO public.node VALUES (1019, 1017, 1017, 2, 'catalog', 'ice', '', false, 'admin', 1795356984934, NULL, NULL, 1, 0, '\x0a0208011a200a1463726564656e7469616c2d70726f766964657273120873332d746f6b656e1a210a1973332d72656d6f74652d7369676e696e672d656e61626c65641204747275651a320a0b73332d726f6c652d61726e122361726e3a6177733a69616d3a3a3132333435363738393031323a726f6c652f6c616b651a340a0977617265686f757365122766696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f626f74682001280132116c616b65686f7573652d69636562657267', 'ice');
INSERT INTO public.node VALUES (1020, 1019, 1019, 3, 'namespace', 's', '', false, 'admin', 1795356984943, NULL, NULL, 1, 0, '\x0a020801', 's');
INSERT INTO public.node VALUES (1021, 1000, 1000, 2, 'catalog', 'both', '', false, 'admin', 1795356984955, NULL, NULL, 7, 0, '\x0a0208011a200a1463726564656e7469616c2d70726f766964657273120873332d746f6b656e1a210a1973332d72656d6f74652d7369676e696e672d656e61626c65641204747275651a320a0b73332d726f6c652d61726e122361726e3a6177733a69616d3a3a3132333435363738393031323a726f6c652f6c616b651a340a0977617265686f757365122766696c653a2f2f2f746d702f6c696d6e6f732d706c616365732d58585858585858582f626f74682001280132116c616b65686f7573652d69636562657267', 'both');
INSERT INTO public.node VALUES (1022, 1021, 1021, 3, 'namespace', 's', '', false, 'admin', 1795356984964, NULL, NULL, 1, 0, '\x0a020801', 's');
INSERT INTO public.node VALUES (1023, 1021, 1022, 4, 'table', 'mine', 'iceberg', false, 'admin', 1795356984971, NULL, NULL, 2, 0, '\x0a020801', 'mine');
INSERT INTO public.node VALUES (1024, 1019, 1020, 4, 'table', 'theirs', 'iceberg', false, 'admin', 1795356985023, NULL, NULL, 2, 0, '\x0a020801', 'theirs');
INSERT INTO public.owner VALUES (1000, 1001);
INSERT INTO public.owner VALUES (1002, 1001);
INSERT INTO public.owner VALUES (1003, 1001);
INSERT INTO public.owner VALUES (1005, 1001);
INSERT INTO public.owner VALUES (1006, 1001);
INSERT INTO public.owner VALUES (1007, 1001);
INSERT INTO public.owner VALUES (1008, 1001);
INSERT INTO public.owner VALUES (1009, 1001);
INSERT INTO public.owner VALUES (1010, 1001);
INSERT INTO public.owner VALUES (1011, 1001);
INSERT INTO public.owner VALUES (1012, 1001);
INSERT INTO public.owner VALUES (1013, 1001);
INSERT INTO public.owner VALUES (1014, 1001);
INSERT INTO public.owner VALUES (1015, 1001);
INSERT INTO public.owner VALUES (1016, 1001);
INSERT INTO public.owner VALUES (1017, 1018);
INSERT INTO public.owner VALUES (1019, 1018);
INSERT INTO public.owner VALUES (1020, 1018);
INSERT INTO public.owner VALUES (1021, 1001);
INSERT INTO public.owner VALUES (1022, 1001);
INSERT INTO public.owner VALUES (1023, 1001);
INSERT INTO public.owner VALUES (1024, 1018);
INSERT INTO public.place VALUES ('file:///tmp/limnos-places-XXXXXXXX/sales/own', 1008, 1, 1005, 1000, 0, false, NULL, 1795356984888, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-places-XXXXXXXX/sales/orders', 1007, 1, 1005, 1000, 0, false, NULL, 1795356984883, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-places-XXXXXXXX/both/theirs', 1024, 1, 1019, 1017, 0, false, NULL, 1795356985023, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-places-XXXXXXXX/both/mine', 1023, 1, 1021, 1000, 0, false, NULL, 1795356984971, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-places-XXXXXXXX/rooted/old', 1011, 1, 1009, 1000, 0, false, NULL, 1795356984898, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-places-XXXXXXXX/free/apart', 1015, 7, 1012, 1000, 0, false, NULL, 1795356984913, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-places-XXXXXXXX/sales/orders', 1014, 7, 1012, 1000, 0, false, NULL, 1795356984908, NULL, NULL);
INSERT INTO public.place VALUES ('', 0, 0, 0, 0, 0, false, NULL, 0, NULL, NULL);
INSERT INTO public.principal VALUES (1001, 1000, 20, 'admin', NULL, true, 'admin', 1795356984844, NULL, NULL, 0, 0, NULL);
INSERT INTO public.principal VALUES (1018, 1017, 20, 'admin', NULL, true, 'admin', 1795356984922, NULL, NULL, 0, 0, NULL);
INSERT INTO public.store VALUES (1, 441561302871737, 1, 1000, ': restricted', 'simple');
INSERT INTO public.token VALUES (1004, 'admin', 'admin.token', '\xc48e959f9e81bc3e80056108526a4dd7d9e0d0d75eac80887ddba47f02639569', 1795356984871, NULL, false, 'proven', 1004, 'api', NULL, NULL, NULL, 0, NULL);
SELECT pg_catalog.setval('public.limnos_id', 1024, true);
SELECT pg_catalog.setval('public.store_one_seq', 1, false);
ALTER TABLE ONLY public.access_answer
    ADD CONSTRAINT access_answer_pkey PRIMARY KEY (metalake_id, user_id, kind, path);
ALTER TABLE ONLY public.access_grant
    ADD CONSTRAINT access_grant_pkey PRIMARY KEY (role_id, object_id, privilege);
ALTER TABLE ONLY public.access_request
    ADD CONSTRAINT access_request_pkey PRIMARY KEY (metalake_id, user_id, kind, path);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.audit_note
    ADD CONSTRAINT audit_note_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_position
    ADD CONSTRAINT audit_position_pkey PRIMARY KEY (zone);
ALTER TABLE ONLY public.change
    ADD CONSTRAINT change_pkey PRIMARY KEY (zone, revision, ordinal);
ALTER TABLE ONLY public.clock
    ADD CONSTRAINT clock_pkey PRIMARY KEY (zone);
ALTER TABLE ONLY public.column_attachment
    ADD CONSTRAINT column_attachment_pkey PRIMARY KEY (object_id, field_id, attached_id);
ALTER TABLE ONLY public.column_statistic
    ADD CONSTRAINT column_statistic_pkey PRIMARY KEY (object_id, field_id, name);
ALTER TABLE ONLY public.dependency
    ADD CONSTRAINT dependency_pkey PRIMARY KEY (user_id, used_id);
ALTER TABLE ONLY public.document
    ADD CONSTRAINT document_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY public.fileset_place
    ADD CONSTRAINT fileset_place_pkey PRIMARY KEY (node_id, location);
ALTER TABLE ONLY public.former_object
    ADD CONSTRAINT former_object_pkey PRIMARY KEY (zone, path, name_space);
ALTER TABLE ONLY public.former_restriction
    ADD CONSTRAINT former_restriction_pkey PRIMARY KEY (zone, path, object_id, restriction);
ALTER TABLE ONLY public.group_member
    ADD CONSTRAINT group_member_pkey PRIMARY KEY (user_id, group_id);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (zone, caller, key);
ALTER TABLE ONLY public.import_object
    ADD CONSTRAINT import_object_pkey PRIMARY KEY (import_id, old_id);
ALTER TABLE ONLY public.lance_version
    ADD CONSTRAINT lance_version_pkey PRIMARY KEY (node_id, branch, version);
ALTER TABLE ONLY public.lineage_column
    ADD CONSTRAINT lineage_column_pkey PRIMARY KEY (target_id, job_digest, ordinal);
ALTER TABLE ONLY public.lineage_dataset
    ADD CONSTRAINT lineage_dataset_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.lineage_edge
    ADD CONSTRAINT lineage_edge_pkey PRIMARY KEY (target_id, job_digest, source_id);
ALTER TABLE ONLY public.maintenance_checkpoint
    ADD CONSTRAINT maintenance_checkpoint_pkey PRIMARY KEY (reader_id, source);
ALTER TABLE ONLY public.maintenance_finding
    ADD CONSTRAINT maintenance_finding_pkey PRIMARY KEY (node_id, kind);
ALTER TABLE ONLY public.maintenance_lease
    ADD CONSTRAINT maintenance_lease_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY public.maintenance_operation
    ADD CONSTRAINT maintenance_operation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.maintenance_orphan_check
    ADD CONSTRAINT maintenance_orphan_check_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY public.maintenance_orphan_file
    ADD CONSTRAINT maintenance_orphan_file_pkey PRIMARY KEY (node_id, name);
ALTER TABLE ONLY public.maintenance_rewrite
    ADD CONSTRAINT maintenance_rewrite_pkey PRIMARY KEY (operation_id);
ALTER TABLE ONLY public.metalake_import
    ADD CONSTRAINT metalake_import_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.metrics_report
    ADD CONSTRAINT metrics_report_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.model_alias
    ADD CONSTRAINT model_alias_pkey PRIMARY KEY (model_id, alias);
ALTER TABLE ONLY public.model_version
    ADD CONSTRAINT model_version_pkey PRIMARY KEY (model_id, version);
ALTER TABLE ONLY public.name_change
    ADD CONSTRAINT name_change_pkey PRIMARY KEY (catalog_id, node_id);
ALTER TABLE ONLY public.name_migration
    ADD CONSTRAINT name_migration_pkey PRIMARY KEY (catalog_id);
ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.node_seen
    ADD CONSTRAINT node_seen_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.owner
    ADD CONSTRAINT owner_pkey PRIMARY KEY (object_id);
ALTER TABLE ONLY public.password
    ADD CONSTRAINT password_pkey PRIMARY KEY (user_name);
ALTER TABLE ONLY public.pipeline_run
    ADD CONSTRAINT pipeline_run_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pipeline_schedule
    ADD CONSTRAINT pipeline_schedule_pkey PRIMARY KEY (pipeline_id);
ALTER TABLE ONLY public.pipeline_version
    ADD CONSTRAINT pipeline_version_pkey PRIMARY KEY (pipeline_id, version);
ALTER TABLE ONLY public.place
    ADD CONSTRAINT place_pkey PRIMARY KEY (location, owner_id, kind);
ALTER TABLE ONLY public.policy_object
    ADD CONSTRAINT policy_object_pkey PRIMARY KEY (object_id, policy_id);
ALTER TABLE ONLY public.principal
    ADD CONSTRAINT principal_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.protection
    ADD CONSTRAINT protection_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY public.restricted_read
    ADD CONSTRAINT restricted_read_pkey PRIMARY KEY (directory, user_name, user_id);
ALTER TABLE ONLY public.restriction
    ADD CONSTRAINT restriction_pkey PRIMARY KEY (object_id, name);
ALTER TABLE ONLY public.role_member
    ADD CONSTRAINT role_member_pkey PRIMARY KEY (principal_id, role_id);
ALTER TABLE ONLY public.role
    ADD CONSTRAINT role_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.run_finding
    ADD CONSTRAINT run_finding_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.run_step
    ADD CONSTRAINT run_step_pkey PRIMARY KEY (run_id, name);
ALTER TABLE ONLY public.scan_plan
    ADD CONSTRAINT scan_plan_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.search_lease
    ADD CONSTRAINT search_lease_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.search_position
    ADD CONSTRAINT search_position_pkey PRIMARY KEY (zone);
ALTER TABLE ONLY public.search_text
    ADD CONSTRAINT search_text_pkey PRIMARY KEY (object_id);
ALTER TABLE ONLY public.search_word
    ADD CONSTRAINT search_word_pkey PRIMARY KEY (word);
ALTER TABLE ONLY public.setting_name
    ADD CONSTRAINT setting_name_pkey PRIMARY KEY (metalake_id);
ALTER TABLE ONLY public.snapshot_pin
    ADD CONSTRAINT snapshot_pin_pkey PRIMARY KEY (run_id, name, table_id);
ALTER TABLE ONLY public.sqlpp_lock_node
    ADD CONSTRAINT sqlpp_lock_node_pkey PRIMARY KEY (holder);
ALTER TABLE ONLY public.sqlpp_lock
    ADD CONSTRAINT sqlpp_lock_pkey PRIMARY KEY (catalog_id, kind, dataverse, entity, token);
ALTER TABLE ONLY public.sqlpp_request
    ADD CONSTRAINT sqlpp_request_pkey PRIMARY KEY (handle);
ALTER TABLE ONLY public.sqlpp_result
    ADD CONSTRAINT sqlpp_result_pkey PRIMARY KEY (handle, number);
ALTER TABLE ONLY public.statistic
    ADD CONSTRAINT statistic_pkey PRIMARY KEY (object_id, partition_name, name);
ALTER TABLE ONLY public.store
    ADD CONSTRAINT store_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.tag_object
    ADD CONSTRAINT tag_object_pkey PRIMARY KEY (object_id, tag_id);
ALTER TABLE ONLY public.tag_value
    ADD CONSTRAINT tag_value_pkey PRIMARY KEY (object_id, field_id, tag_id, value);
ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.template_job
    ADD CONSTRAINT template_job_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.token
    ADD CONSTRAINT token_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.trash
    ADD CONSTRAINT trash_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY public.webhook
    ADD CONSTRAINT webhook_pkey PRIMARY KEY (id);
CREATE INDEX access_grant_denied ON public.access_grant USING btree (object_id) WHERE (NOT allowed);
CREATE INDEX access_grant_object ON public.access_grant USING btree (object_id);
CREATE INDEX access_request_time ON public.access_request USING btree (metalake_id, asked_at);
CREATE INDEX audit_at ON public.audit USING btree (at);
CREATE INDEX audit_metalake ON public.audit USING btree (metalake_id, id);
CREATE INDEX audit_object ON public.audit USING btree (object_id, id);
CREATE INDEX audit_path ON public.audit USING btree (path, id);
CREATE INDEX audit_request ON public.audit USING btree (request_id);
CREATE INDEX audit_time ON public.audit USING btree (metalake_id, at, id);
CREATE INDEX audit_user ON public.audit USING btree (user_name, id);
CREATE INDEX column_attachment_attached ON public.column_attachment USING btree (attached_id, object_id);
CREATE INDEX dependency_used ON public.dependency USING btree (used_id);
CREATE UNIQUE INDEX document_location ON public.document USING btree (location);
CREATE INDEX document_undigested ON public.document USING btree (node_id) WHERE ((digest IS NULL) OR ((digest >> 32) <> ((version % '2147483648'::bigint) - '2147483648'::bigint)));
CREATE INDEX document_uuid ON public.document USING btree (uuid);
CREATE INDEX fileset_place_location ON public.fileset_place USING btree (location);
CREATE INDEX former_object_id ON public.former_object USING btree (object_id);
CREATE INDEX former_object_name ON public.former_object USING btree (zone, name);
CREATE INDEX former_restriction_name ON public.former_restriction USING btree (zone, name);
CREATE INDEX group_member_group ON public.group_member USING btree (group_id);
CREATE INDEX idempotency_expires ON public.idempotency USING btree (expires_at);
CREATE INDEX lineage_column_source ON public.lineage_column USING btree (source_id);
CREATE UNIQUE INDEX lineage_dataset_digest ON public.lineage_dataset USING btree (metalake_id, digest);
CREATE INDEX lineage_edge_source ON public.lineage_edge USING btree (source_id);
CREATE INDEX maintenance_checkpoint_source ON public.maintenance_checkpoint USING btree (source);
CREATE INDEX maintenance_finding_catalog ON public.maintenance_finding USING btree (catalog_id, node_id);
CREATE INDEX maintenance_operation_catalog ON public.maintenance_operation USING btree (catalog_id, id);
CREATE INDEX maintenance_operation_leased ON public.maintenance_operation USING btree (leased_at);
CREATE INDEX maintenance_operation_node ON public.maintenance_operation USING btree (node_id, id);
CREATE INDEX maintenance_orphan_file_state ON public.maintenance_orphan_file USING btree (state, node_id);
CREATE INDEX maintenance_rewrite_metalake ON public.maintenance_rewrite USING btree (metalake_id, due_at);
CREATE INDEX metrics_report_expires ON public.metrics_report USING btree (expires_at);
CREATE INDEX metrics_report_node ON public.metrics_report USING btree (node_id, id);
CREATE INDEX name_change_step ON public.name_change USING btree (catalog_id, step, node_id);
CREATE INDEX node_folded ON public.node USING btree (zone, folded) WHERE (deleted = 0);
CREATE UNIQUE INDEX node_name ON public.node USING btree (parent_id, name_space, name) WHERE (deleted = 0);
CREATE INDEX node_namespace ON public.node USING btree (zone, parent_id) WHERE ((kind = 3) AND (deleted = 0));
CREATE INDEX node_unfolded ON public.node USING btree (id) WHERE (folded IS NULL);
CREATE INDEX owner_principal_object ON public.owner USING btree (principal_id, object_id);
CREATE INDEX pipeline_run_ended ON public.pipeline_run USING btree (ended_at);
CREATE INDEX pipeline_run_metalake ON public.pipeline_run USING btree (metalake_id, id);
CREATE INDEX pipeline_run_pipeline ON public.pipeline_run USING btree (pipeline_id, id);
CREATE UNIQUE INDEX pipeline_run_uuid ON public.pipeline_run USING btree (metalake_id, uuid);
CREATE INDEX pipeline_schedule_due ON public.pipeline_schedule USING btree (due_at);
CREATE INDEX pipeline_schedule_metalake ON public.pipeline_schedule USING btree (metalake_id, pipeline_id);
CREATE INDEX place_conflicting ON public.place USING btree (owner_id) WHERE conflicting;
CREATE INDEX place_keys_until ON public.place USING btree (keys_until) WHERE (keys_until IS NOT NULL);
CREATE INDEX place_owner ON public.place USING btree (owner_id);
CREATE INDEX policy_object_policy ON public.policy_object USING btree (policy_id);
CREATE UNIQUE INDEX principal_external_id ON public.principal USING btree (metalake_id, kind, external_id) WHERE (deleted = 0);
CREATE INDEX principal_former ON public.principal USING btree (metalake_id, kind, name) WHERE (deleted <> 0);
CREATE UNIQUE INDEX principal_name ON public.principal USING btree (metalake_id, kind, name) WHERE (deleted = 0);
CREATE INDEX protection_zone ON public.protection USING btree (zone);
CREATE INDEX restricted_read_expires ON public.restricted_read USING btree (expires_at);
CREATE INDEX restricted_read_table ON public.restricted_read USING btree (table_id);
CREATE INDEX restricted_read_user ON public.restricted_read USING btree (user_name);
CREATE INDEX restriction_zone ON public.restriction USING btree (zone);
CREATE INDEX role_member_role ON public.role_member USING btree (role_id);
CREATE UNIQUE INDEX role_name ON public.role USING btree (metalake_id, name) WHERE (deleted = 0);
CREATE INDEX run_finding_pipeline ON public.run_finding USING btree (pipeline_id, id);
CREATE INDEX run_finding_run ON public.run_finding USING btree (run_id, step);
CREATE INDEX scan_plan_expires ON public.scan_plan USING btree (expires_at);
CREATE INDEX scan_plan_user ON public.scan_plan USING btree (user_name);
CREATE INDEX search_text_all ON public.search_text USING gin (all_vector);
CREATE INDEX search_text_name ON public.search_text USING gin (name_vector);
CREATE INDEX setting_name_name ON public.setting_name USING btree (name);
CREATE INDEX snapshot_pin_expires ON public.snapshot_pin USING btree (expires_at);
CREATE INDEX snapshot_pin_table ON public.snapshot_pin USING btree (table_id);
CREATE INDEX sqlpp_lock_token ON public.sqlpp_lock USING btree (token);
CREATE INDEX sqlpp_request_holder ON public.sqlpp_request USING btree (holder);
CREATE INDEX sqlpp_request_user ON public.sqlpp_request USING btree (user_name);
CREATE INDEX tag_object_tag ON public.tag_object USING btree (tag_id, object_id);
CREATE INDEX tag_value_value ON public.tag_value USING btree (tag_id, value);
CREATE INDEX task_due ON public.task USING btree (due_at);
CREATE INDEX template_job_metalake ON public.template_job USING btree (metalake_id, id);
CREATE INDEX template_job_state ON public.template_job USING btree (state, id);
CREATE INDEX template_job_template ON public.template_job USING btree (template_id, id);
CREATE UNIQUE INDEX template_job_uuid ON public.template_job USING btree (metalake_id, uuid);
CREATE INDEX token_user ON public.token USING btree (user_name);
CREATE INDEX trash_expires ON public.trash USING btree (expires_at);
CREATE INDEX trash_parent ON public.trash USING btree (parent_id, dropped_at, node_id);
CREATE INDEX trash_zone ON public.trash USING btree (zone, dropped_at, node_id);

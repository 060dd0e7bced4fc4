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
INSERT INTO public.access_grant VALUES (1031, 1013, 4, 3, true);
INSERT INTO public.access_grant VALUES (1032, 1002, 2, 2, true);
INSERT INTO public.access_grant VALUES (1032, 1002, 4, 2, true);
INSERT INTO public.access_grant VALUES (1032, 1002, 6, 2, true);
INSERT INTO public.alembic_version VALUES ('0068');
INSERT INTO public.change VALUES (0, 1, 0, 'create', 1, 1000, 'metalake', NULL, NULL, 0, 'lake', 1001, 'admin', 'bootstrap', 1795292097440, NULL);
INSERT INTO public.change VALUES (1000, 1, 0, 'create', 2, 1002, 'catalog', NULL, NULL, 1000, 'main', 1001, 'admin', 'bootstrap', 1795292097800, NULL);
INSERT INTO public.change VALUES (1000, 2, 0, 'create', 2, 1003, 'catalog', NULL, NULL, 1000, 'lance', 1001, 'admin', 'bootstrap', 1795292097970, NULL);
INSERT INTO public.change VALUES (0, 2, 0, 'create', 23, 1004, '', 0, 'admin', NULL, NULL, NULL, 'admin', 'bootstrap', 1795292098074, NULL);
INSERT INTO public.change VALUES (0, 3, 0, 'alter', 1, 1000, 'metalake', NULL, NULL, NULL, NULL, NULL, 'admin', '3bc748506165000004', 1795292098275, NULL);
INSERT INTO public.change VALUES (1000, 3, 0, 'create', 20, 1005, '', NULL, NULL, 1000, 'owner', NULL, 'admin', '3bc748506165000006', 1795292098488, NULL);
INSERT INTO public.change VALUES (1000, 4, 0, 'create', 20, 1006, '', NULL, NULL, 1000, 'reader', NULL, 'admin', '3bc748506165000008', 1795292098730, NULL);
INSERT INTO public.change VALUES (1000, 5, 0, 'create', 20, 1007, '', NULL, NULL, 1000, 'stranger', NULL, 'admin', '3bc74850616500000a', 1795292098881, NULL);
INSERT INTO public.change VALUES (1000, 6, 0, 'create', 20, 1008, '', NULL, NULL, 1000, 'ana', NULL, 'admin', '3bc74850616500000c', 1795292099013, NULL);
INSERT INTO public.change VALUES (1000, 7, 0, 'create', 21, 1009, '', NULL, NULL, 1000, 'crew', NULL, 'admin', '3bc74850616500000e', 1795292099146, NULL);
INSERT INTO public.change VALUES (1000, 8, 0, 'create', 2, 1010, 'catalog', NULL, NULL, 1000, 'models', 1001, 'admin', '3bc748506165000014', 1795292099410, NULL);
INSERT INTO public.change VALUES (1000, 9, 0, 'create', 2, 1011, 'catalog', NULL, NULL, 1000, 'files', 1001, 'admin', '3bc748506165000016', 1795292099670, NULL);
INSERT INTO public.change VALUES (1000, 10, 0, 'create', 2, 1012, 'catalog', NULL, NULL, 1000, 'topics', 1001, 'admin', '3bc748506165000018', 1795292099922, NULL);
INSERT INTO public.change VALUES (1000, 11, 0, 'alter', 2, 1002, 'catalog', NULL, NULL, NULL, NULL, NULL, 'admin', '3bc74850616500001a', 1795292100062, NULL);
INSERT INTO public.change VALUES (1002, 1, 0, 'create', 3, 1013, 'namespace', NULL, NULL, 1002, 'a', 1001, 'admin', '3bc74850616500001c', 1795292100140, NULL);
INSERT INTO public.change VALUES (1002, 2, 0, 'create', 4, 1014, 'table', NULL, NULL, 1013, 't', 1001, 'admin', '3bc74850616500001e', 1795292100260, NULL);
INSERT INTO public.change VALUES (1002, 3, 0, 'create', 5, 1015, 'table', NULL, NULL, 1013, 'v', 1001, 'admin', '3bc748506165000020', 1795292100490, NULL);
INSERT INTO public.change VALUES (1003, 1, 0, 'create', 3, 1016, 'object', NULL, NULL, 1003, 'a', 1001, 'admin', '3bc748506165000022', 1795292100626, NULL);
INSERT INTO public.change VALUES (1003, 2, 0, 'create', 4, 1018, 'object', NULL, NULL, 1016, 't', 1001, 'admin', '3bc748506165000024', 1795292124152, NULL);
INSERT INTO public.change VALUES (1000, 12, 0, 'create', 11, 1019, 'tag', NULL, NULL, 1000, 'red', 1001, 'admin', '3bc748506165000026', 1795292124359, NULL);
INSERT INTO public.change VALUES (1000, 13, 0, 'attach', 11, 1019, 'tag', NULL, NULL, 1013, NULL, NULL, 'admin', '3bc748506165000028', 1795292124625, NULL);
INSERT INTO public.change VALUES (1000, 14, 0, 'create', 12, 1020, 'policy', NULL, NULL, 1000, 'keep', 1001, 'admin', '3bc74850616500002a', 1795292124798, NULL);
INSERT INTO public.change VALUES (1000, 15, 0, 'create', 13, 1021, 'job_template', NULL, NULL, 1000, 'nyc', 1001, 'admin', '3bc74850616500002c', 1795292124941, NULL);
INSERT INTO public.change VALUES (1000, 16, 0, 'create', 13, 1022, 'job_template', NULL, NULL, 1000, 'flights', 1001, 'admin', '3bc74850616500002e', 1795292125085, NULL);
INSERT INTO public.change VALUES (1000, 17, 0, 'start', 14, 1023, 'job', NULL, NULL, 1022, '01234567-0123-4567-89ab-0123456789ab', NULL, 'admin', '3bc748506165000030', 1795292125283, NULL);
INSERT INTO public.change VALUES (1002, 4, 0, 'create', 9, 1024, 'function', NULL, NULL, 1013, 'f', 1001, 'admin', '3bc748506165000032', 1795292125598, NULL);
INSERT INTO public.change VALUES (1010, 1, 0, 'create', 3, 1025, 'namespace', NULL, NULL, 1010, 'a', 1001, 'admin', '3bc748506165000034', 1795292125760, NULL);
INSERT INTO public.change VALUES (1011, 1, 0, 'create', 3, 1026, 'namespace', NULL, NULL, 1011, 'a', 1001, 'admin', '3bc748506165000036', 1795292125889, NULL);
INSERT INTO public.change VALUES (1012, 1, 0, 'create', 3, 1027, 'namespace', NULL, NULL, 1012, 'a', 1001, 'admin', '3bc748506165000038', 1795292126118, NULL);
INSERT INTO public.change VALUES (1010, 2, 0, 'create', 8, 1028, 'model', NULL, NULL, 1025, 'churn', 1001, 'admin', '3bc74850616500003a', 1795292126314, NULL);
INSERT INTO public.change VALUES (1010, 3, 0, 'alter', 8, 1028, 'model', NULL, NULL, NULL, NULL, NULL, 'admin', '3bc74850616500003c', 1795292126495, NULL);
INSERT INTO public.change VALUES (1011, 2, 0, 'create', 6, 1029, 'fileset', NULL, NULL, 1026, 'f', 1001, 'admin', '3bc74850616500003e', 1795292126689, NULL);
INSERT INTO public.change VALUES (1012, 2, 0, 'create', 7, 1030, 'topic', NULL, NULL, 1027, 'o', 1001, 'admin', '3bc748506165000040', 1795292126942, NULL);
INSERT INTO public.change VALUES (1000, 18, 0, 'create', 22, 1031, '', NULL, NULL, 1000, 'hands', NULL, 'admin', '3bc748506165000042', 1795292127062, NULL);
INSERT INTO public.change VALUES (1000, 18, 1, 'alter', 22, 1031, '', 1000, 'hands', NULL, NULL, NULL, 'admin', '3bc748506165000042', 1795292127062, NULL);
INSERT INTO public.change VALUES (1000, 19, 0, 'create', 22, 1032, '', NULL, NULL, 1000, 'readers', NULL, 'admin', '3bc748506165000044', 1795292127203, NULL);
INSERT INTO public.change VALUES (1000, 19, 1, 'alter', 22, 1032, '', 1000, 'readers', NULL, NULL, NULL, 'admin', '3bc748506165000044', 1795292127203, NULL);
INSERT INTO public.change VALUES (1000, 20, 0, 'give', 20, 1006, '', 1000, 'reader', 1032, NULL, NULL, 'admin', '3bc748506165000046', 1795292127334, NULL);
INSERT INTO public.change VALUES (1000, 21, 0, 'own', 2, 1002, 'catalog', 1000, NULL, NULL, 'main', 1005, 'admin', '3bc748506165000048', 1795292127462, NULL);
INSERT INTO public.change VALUES (1000, 22, 0, 'own', 2, 1003, 'catalog', 1000, NULL, NULL, 'lance', 1005, 'admin', '3bc74850616500004a', 1795292127558, NULL);
INSERT INTO public.change VALUES (1000, 23, 0, 'own', 2, 1010, 'catalog', 1000, NULL, NULL, 'models', 1005, 'admin', '3bc74850616500004c', 1795292127695, NULL);
INSERT INTO public.change VALUES (1000, 24, 0, 'own', 2, 1011, 'catalog', 1000, NULL, NULL, 'files', 1005, 'admin', '3bc74850616500004e', 1795292127782, NULL);
INSERT INTO public.change VALUES (1000, 25, 0, 'own', 2, 1012, 'catalog', 1000, NULL, NULL, 'topics', 1005, 'admin', '3bc748506165000050', 1795292127871, NULL);
INSERT INTO public.change VALUES (0, 4, 0, 'own', 1, 1000, 'metalake', 0, NULL, NULL, 'lake', 1005, 'admin', '3bc748506165000052', 1795292127976, NULL);
INSERT INTO public.change VALUES (1002, 5, 0, 'create', 3, 1033, 'namespace', NULL, NULL, 1013, 'b', 1005, 'owner', '3bc748506165000053', 1795292128083, NULL);
INSERT INTO public.change VALUES (1002, 6, 0, 'create', 4, 1034, 'table', NULL, NULL, 1033, 'deep', 1005, 'owner', '3bc748506165000055', 1795292128270, NULL);
INSERT INTO public.change VALUES (1002, 7, 0, 'commit', 4, 1014, 'table', NULL, NULL, NULL, NULL, NULL, 'owner', '3bc748506165000056', 1795292128428, NULL);
INSERT INTO public.change VALUES (1002, 8, 0, 'create', 4, 1035, 'table', NULL, NULL, 1013, 'gone', 1005, 'owner', '3bc748506165000058', 1795292128530, NULL);
INSERT INTO public.change VALUES (1002, 9, 0, 'drop', 4, 1035, 'table', 1013, 'gone', NULL, NULL, NULL, 'owner', '3bc748506165000059', 1795292128713, NULL);
INSERT INTO public.change VALUES (1000, 26, 0, 'join', 20, 1008, '', 1000, 'ana', 1009, NULL, NULL, 'owner', '3bc74850616500005a', 1795292128898, NULL);
INSERT INTO public.change VALUES (1002, 10, 0, 'protect', 4, 1014, 'table', NULL, NULL, NULL, NULL, NULL, 'owner', '3bc74850616500005b', 1795292128982, NULL);
INSERT INTO public.change VALUES (0, 5, 0, 'create', 23, 1036, '', 0, 'admin', NULL, NULL, NULL, 'admin', '3bc74850616500005c', 1795292129007, NULL);
INSERT INTO public.clock VALUES (1003, 2, 0, 0);
INSERT INTO public.clock VALUES (1010, 3, 0, 0);
INSERT INTO public.clock VALUES (1011, 2, 0, 0);
INSERT INTO public.clock VALUES (1012, 2, 0, 0);
INSERT INTO public.clock VALUES (1000, 26, 26, 0);
INSERT INTO public.clock VALUES (1002, 10, 9, 0);
INSERT INTO public.clock VALUES (0, 5, 5, 0);
INSERT INTO public.document VALUES (1015, 1, '01a1ffbf-772f-7536-8aec-14b32e6e4659', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbf772f75368aec14b32e6e4659', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbf772f75368aec14b32e6e4659/metadata/00000-01a1ffbf-7726-7401-bbd5-c56cf05070a9.metadata.json', '\x7b22766965772d75756964223a2230316131666662662d373732662d373533362d386165632d313462333265366534363539222c22666f726d61742d76657273696f6e223a312c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d757067726164652d34695f32776d6f312f77617265686f7573652f6d61696e2f3031613166666266373732663735333638616563313462333265366534363539222c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2263757272656e742d76657273696f6e2d6964223a312c2276657273696f6e73223a5b7b2273756d6d617279223a7b7d2c2276657273696f6e2d6964223a312c2274696d657374616d702d6d73223a313730303030303030303030302c22736368656d612d6964223a302c2264656661756c742d6e616d657370616365223a5b5d2c22726570726573656e746174696f6e73223a5b7b2274797065223a2273716c222c226469616c656374223a22737061726b222c2273716c223a2273656c6563742031206173206964227d5d7d5d2c2276657273696f6e2d6c6f67223a5b7b2274696d657374616d702d6d73223a313730303030303030303030302c2276657273696f6e2d6964223a317d5d2c2270726f70657274696573223a7b7d7d', NULL);
INSERT INTO public.document VALUES (1018, 1, '01a1ffbf-7883-77e1-baa5-b1962bd5ca70', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/lance/01a1ffbf788377e1baa5b1962bd5ca70', '', '\x7b7d', NULL);
INSERT INTO public.document VALUES (1034, 1, '01a1ffbf-e404-751b-8c5e-a62974fdb5c7', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbfe404751b8c5ea62974fdb5c7', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbfe404751b8c5ea62974fdb5c7/metadata/00000-01a1ffbf-e3ff-7aab-9b65-c3943f3f3584.metadata.json', '\x7b22666f726d61742d76657273696f6e223a322c227461626c652d75756964223a2230316131666662662d653430342d373531622d386335652d613632393734666462356337222c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d757067726164652d34695f32776d6f312f77617265686f7573652f6d61696e2f3031613166666266653430343735316238633565613632393734666462356337222c226c6173742d73657175656e63652d6e756d626572223a302c226c6173742d757064617465642d6d73223a313739353239323132383236302c226c6173742d636f6c756d6e2d6964223a322c2263757272656e742d736368656d612d6964223a302c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2264656661756c742d737065632d6964223a302c22706172746974696f6e2d7370656373223a5b7b22737065632d6964223a302c226669656c6473223a5b5d7d5d2c226c6173742d706172746974696f6e2d6964223a3939392c2264656661756c742d736f72742d6f726465722d6964223a302c22736f72742d6f7264657273223a5b7b226f726465722d6964223a302c226669656c6473223a5b5d7d5d2c2270726f70657274696573223a7b2277726974652e706172717565742e636f6d7072657373696f6e2d636f646563223a227a737464227d2c2263757272656e742d736e617073686f742d6964223a2d312c2272656673223a7b7d2c22736e617073686f7473223a5b5d2c2273746174697374696373223a5b5d2c22706172746974696f6e2d73746174697374696373223a5b5d2c22736e617073686f742d6c6f67223a5b5d2c226d657461646174612d6c6f67223a5b5d7d', NULL);
INSERT INTO public.document VALUES (1014, 2, '01a1ffbf-7697-71a6-a488-bc997e7ec50a', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbf769771a6a488bc997e7ec50a', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbf769771a6a488bc997e7ec50a/metadata/00001-01a1ffbf-e4a1-76ed-9f78-2c2a25e530bd.metadata.json', '\x7b22666f726d61742d76657273696f6e223a322c227461626c652d75756964223a2230316131666662662d373639372d373161362d613438382d626339393765376563353061222c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d757067726164652d34695f32776d6f312f77617265686f7573652f6d61696e2f3031613166666266373639373731613661343838626339393765376563353061222c226c6173742d73657175656e63652d6e756d626572223a302c226c6173742d757064617465642d6d73223a313739353239323132383432322c226c6173742d636f6c756d6e2d6964223a322c2263757272656e742d736368656d612d6964223a302c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2264656661756c742d737065632d6964223a302c22706172746974696f6e2d7370656373223a5b7b22737065632d6964223a302c226669656c6473223a5b5d7d5d2c226c6173742d706172746974696f6e2d6964223a3939392c2264656661756c742d736f72742d6f726465722d6964223a302c22736f72742d6f7264657273223a5b7b226f726465722d6964223a302c226669656c6473223a5b5d7d5d2c2270726f70657274696573223a7b2277726974652e706172717565742e636f6d7072657373696f6e2d636f646563223a227a737464222c22736561736f6e223a2277696e746572227d2c2263757272656e742d736e617073686f742d6964223a2d312c2272656673223a7b7d2c22736e617073686f7473223a5b5d2c2273746174697374696373223a5b5d2c22706172746974696f6e2d73746174697374696373223a5b5d2c22736e617073686f742d6c6f67223a5b5d2c226d657461646174612d6c6f67223a5b7b2274696d657374616d702d6d73223a313739353239323130303234372c226d657461646174612d66696c65223a2266696c653a2f2f2f746d702f6c696d6e6f732d757067726164652d34695f32776d6f312f77617265686f7573652f6d61696e2f30316131666662663736393737316136613438386263393937653765633530612f6d657461646174612f30303030302d30316131666662662d373638652d376330662d623163352d3035313265373833613531392e6d657461646174612e6a736f6e227d5d7d', NULL);
INSERT INTO public.document VALUES (1035, 1, '01a1ffbf-e4fa-797f-8563-e7321e112255', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbfe4fa797f8563e7321e112255', 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbfe4fa797f8563e7321e112255/metadata/00000-01a1ffbf-e4f5-766e-897a-518ea91b310e.metadata.json', '\x7b22666f726d61742d76657273696f6e223a322c227461626c652d75756964223a2230316131666662662d653466612d373937662d383536332d653733323165313132323535222c226c6f636174696f6e223a2266696c653a2f2f2f746d702f6c696d6e6f732d757067726164652d34695f32776d6f312f77617265686f7573652f6d61696e2f3031613166666266653466613739376638353633653733323165313132323535222c226c6173742d73657175656e63652d6e756d626572223a302c226c6173742d757064617465642d6d73223a313739353239323132383530362c226c6173742d636f6c756d6e2d6964223a322c2263757272656e742d736368656d612d6964223a302c22736368656d6173223a5b7b2274797065223a22737472756374222c226669656c6473223a5b7b226964223a312c226e616d65223a226964222c227265717569726564223a747275652c2274797065223a226c6f6e67227d2c7b226964223a322c226e616d65223a2263697479222c227265717569726564223a66616c73652c2274797065223a22737472696e67227d5d2c22736368656d612d6964223a307d5d2c2264656661756c742d737065632d6964223a302c22706172746974696f6e2d7370656373223a5b7b22737065632d6964223a302c226669656c6473223a5b5d7d5d2c226c6173742d706172746974696f6e2d6964223a3939392c2264656661756c742d736f72742d6f726465722d6964223a302c22736f72742d6f7264657273223a5b7b226f726465722d6964223a302c226669656c6473223a5b5d7d5d2c2270726f70657274696573223a7b2277726974652e706172717565742e636f6d7072657373696f6e2d636f646563223a227a737464227d2c2263757272656e742d736e617073686f742d6964223a2d312c2272656673223a7b7d2c22736e617073686f7473223a5b5d2c2273746174697374696373223a5b5d2c22706172746974696f6e2d73746174697374696373223a5b5d2c22736e617073686f742d6c6f67223a5b5d2c226d657461646174612d6c6f67223a5b5d7d', NULL);
INSERT INTO public.fileset_place VALUES (1029, 'file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/1011/01a1ffbfddd27b5b838a8802043de9b0', true, false);
INSERT INTO public.group_member VALUES (1008, 1009, false);
INSERT INTO public.model_alias VALUES (1028, 'new', 0);
INSERT INTO public.model_version VALUES (1028, 0, NULL, '{}', '{"unknown":"s3://x"}', 'admin', 1795292126495, NULL, NULL);
INSERT INTO public.node VALUES (1000, 0, 0, 1, 'metalake', 'lake', '', false, 'admin', 1795292097440, 'admin', 1795292098275, 3, 0, '\x0a02080112134d616465206f6e2066697273742073746172742001', 'lake');
INSERT INTO public.node VALUES (1002, 1000, 1000, 2, 'catalog', 'main', '', false, 'admin', 1795292097800, 'admin', 1795292100062, 11, 0, '\x0a02080112134d616465206f6e2066697273742073746172741a3f0a0977617265686f757365123266696c653a2f2f2f746d702f6c696d6e6f732d757067726164652d34695f32776d6f312f77617265686f7573652f6d61696e2001280132116c616b65686f7573652d69636562657267', 'main');
INSERT INTO public.node VALUES (1003, 1000, 1000, 2, 'catalog', 'lance', '', false, 'admin', 1795292097970, NULL, NULL, 2, 0, '\x0a02080112134d616465206f6e2066697273742073746172741a400a0977617265686f757365123366696c653a2f2f2f746d702f6c696d6e6f732d757067726164652d34695f32776d6f312f77617265686f7573652f6c616e63652001280132116c616b65686f7573652d67656e65726963', 'lance');
INSERT INTO public.node VALUES (1010, 1000, 1000, 2, 'catalog', 'models', '', false, 'admin', 1795292099410, NULL, NULL, 8, 0, '\x0a0208012001280432056d6f64656c', 'models');
INSERT INTO public.node VALUES (1011, 1000, 1000, 2, 'catalog', 'files', '', false, 'admin', 1795292099670, NULL, NULL, 9, 0, '\x0a02080120012802320766696c65736574', 'files');
INSERT INTO public.node VALUES (1012, 1000, 1000, 2, 'catalog', 'topics', '', false, 'admin', 1795292099922, NULL, NULL, 10, 0, '\x0a0208012001280332096d6573736167696e67', 'topics');
INSERT INTO public.node VALUES (1013, 1002, 1002, 3, 'namespace', 'a', '', false, 'admin', 1795292100140, NULL, NULL, 1, 0, '\x0a020801', 'a');
INSERT INTO public.node VALUES (1014, 1002, 1013, 4, 'table', 't', 'iceberg', false, 'admin', 1795292100260, NULL, NULL, 2, 0, '\x0a020801', 't');
INSERT INTO public.node VALUES (1015, 1002, 1013, 5, 'table', 'v', 'iceberg', false, 'admin', 1795292100490, NULL, NULL, 3, 0, '\x0a02080120e907', 'v');
INSERT INTO public.node VALUES (1016, 1003, 1003, 3, 'object', 'a', '', false, 'admin', 1795292100626, NULL, NULL, 1, 0, '\x0a020801', 'a');
INSERT INTO public.node VALUES (1018, 1003, 1016, 4, 'object', 't', 'lance', false, 'admin', 1795292124152, NULL, NULL, 2, 0, '\x0a020801', 't');
INSERT INTO public.node VALUES (1019, 1000, 1000, 11, 'tag', 'red', '', false, 'admin', 1795292124359, NULL, NULL, 12, 0, '\x0a020801', 'red');
INSERT INTO public.node VALUES (1020, 1000, 1000, 12, 'policy', 'keep', '', false, 'admin', 1795292124798, NULL, NULL, 14, 0, '\x0a0208012206637573746f6d2801324e7b22737570706f727465644f626a6563745479706573223a5b22434154414c4f47222c22534348454d41222c225441424c45225d2c22637573746f6d52756c6573223a7b2264617973223a377d7d', 'keep');
INSERT INTO public.node VALUES (1021, 1000, 1000, 13, 'job_template', 'nyc', '', false, 'admin', 1795292124941, NULL, NULL, 15, 0, '\x0a02080132057368656c6c3a1a7b2265786563757461626c65223a222f62696e2f74727565227d', 'nyc');
INSERT INTO public.node VALUES (1022, 1000, 1000, 13, 'job_template', 'flights', '', false, 'admin', 1795292125085, NULL, NULL, 16, 0, '\x0a02080120012a4034343133366661333535623336373861313134366164313666376538363439653934666234666332316665373765383331306330363066363163616166663861', 'flights');
INSERT INTO public.node VALUES (1024, 1002, 1013, 9, 'function', 'f', '', false, 'admin', 1795292125598, NULL, NULL, 4, 0, '\x0a0208012a6f7b2266756e6374696f6e54797065223a227363616c6172222c2264657465726d696e6973746963223a747275652c22646566696e6974696f6e73223a5b7b22706172616d6574657273223a5b5d2c2272657475726e54797065223a226c6f6e67222c22696d706c73223a5b5d7d5d7d', 'f');
INSERT INTO public.node VALUES (1025, 1010, 1010, 3, 'namespace', 'a', '', false, 'admin', 1795292125760, NULL, NULL, 1, 0, '\x0a020801', 'a');
INSERT INTO public.node VALUES (1026, 1011, 1011, 3, 'namespace', 'a', '', false, 'admin', 1795292125889, NULL, NULL, 1, 0, '\x0a020801', 'a');
INSERT INTO public.node VALUES (1027, 1012, 1012, 3, 'namespace', 'a', '', false, 'admin', 1795292126118, NULL, NULL, 1, 0, '\x0a020801', 'a');
INSERT INTO public.node VALUES (1028, 1010, 1025, 8, 'model', 'churn', '', false, 'admin', 1795292126314, 'admin', 1795292126495, 3, 0, '\x0a0208012001', 'churn');
INSERT INTO public.node VALUES (1029, 1011, 1026, 6, 'fileset', 'f', '', false, 'admin', 1795292126689, NULL, NULL, 2, 0, '\x0a0208011a200a1564656661756c742d6c6f636174696f6e2d6e616d651207756e6b6e6f776e2a5e0a07756e6b6e6f776e125366696c653a2f2f2f746d702f6c696d6e6f732d757067726164652d34695f32776d6f312f77617265686f7573652f313031312f3031613166666266646464323762356238333861383830323034336465396230', 'f');
INSERT INTO public.node VALUES (1030, 1012, 1027, 7, 'topic', 'o', '', false, 'admin', 1795292126942, NULL, NULL, 2, 0, '\x0a020801', 'o');
INSERT INTO public.node VALUES (1033, 1002, 1013, 3, 'namespace', 'b', '', false, 'owner', 1795292128083, NULL, NULL, 5, 0, '\x0a0208011a0f0a07707572706f7365120464656570', 'b');
INSERT INTO public.node VALUES (1034, 1002, 1033, 4, 'table', 'deep', 'iceberg', false, 'owner', 1795292128270, NULL, NULL, 6, 0, '\x0a020801', 'deep');
INSERT INTO public.node VALUES (1035, 1002, 1013, 4, 'table', 'gone', 'iceberg', false, 'owner', 1795292128530, 'owner', 1795292128713, 9, 1035, '\x0a020801', 'gone');
INSERT INTO public.owner VALUES (1013, 1001);
INSERT INTO public.owner VALUES (1014, 1001);
INSERT INTO public.owner VALUES (1015, 1001);
INSERT INTO public.owner VALUES (1016, 1001);
INSERT INTO public.owner VALUES (1018, 1001);
INSERT INTO public.owner VALUES (1019, 1001);
INSERT INTO public.owner VALUES (1020, 1001);
INSERT INTO public.owner VALUES (1021, 1001);
INSERT INTO public.owner VALUES (1022, 1001);
INSERT INTO public.owner VALUES (1023, 1001);
INSERT INTO public.owner VALUES (1024, 1001);
INSERT INTO public.owner VALUES (1025, 1001);
INSERT INTO public.owner VALUES (1026, 1001);
INSERT INTO public.owner VALUES (1027, 1001);
INSERT INTO public.owner VALUES (1028, 1001);
INSERT INTO public.owner VALUES (1029, 1001);
INSERT INTO public.owner VALUES (1030, 1001);
INSERT INTO public.owner VALUES (1031, 1001);
INSERT INTO public.owner VALUES (1032, 1001);
INSERT INTO public.owner VALUES (1002, 1005);
INSERT INTO public.owner VALUES (1003, 1005);
INSERT INTO public.owner VALUES (1010, 1005);
INSERT INTO public.owner VALUES (1011, 1005);
INSERT INTO public.owner VALUES (1012, 1005);
INSERT INTO public.owner VALUES (1000, 1005);
INSERT INTO public.owner VALUES (1033, 1005);
INSERT INTO public.owner VALUES (1034, 1005);
INSERT INTO public.owner VALUES (1035, 1005);
INSERT INTO public.pipeline_run VALUES (1023, 1000, 1022, 1, '01234567-0123-4567-89ab-0123456789ab', 'admin', 1001, 'running', 1, 'h:1', 1795292125283, 30000, '{}', '{}', NULL, NULL, NULL, NULL, 1795292125283, NULL, NULL, NULL);
INSERT INTO public.pipeline_version VALUES (1022, 1, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '{}', 'admin', 1795292125085);
INSERT INTO public.place VALUES ('file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/lance/01a1ffbf788377e1baa5b1962bd5ca70', 1018, 4, 1003, 1000, 0, false, NULL, 1795292124152, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbfe4fa797f8563e7321e112255', 1035, 1, 1002, 1000, 0, false, NULL, 1795292128530, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbfe404751b8c5ea62974fdb5c7', 1034, 1, 1002, 1000, 0, false, NULL, 1795292128270, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbf772f75368aec14b32e6e4659', 1015, 3, 1002, 1000, 0, false, NULL, 1795292100490, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/main/01a1ffbf769771a6a488bc997e7ec50a', 1014, 1, 1002, 1000, 0, false, NULL, 1795292100260, NULL, NULL);
INSERT INTO public.place VALUES ('file:///tmp/limnos-upgrade-4i_2wmo1/warehouse/1011/01a1ffbfddd27b5b838a8802043de9b0', 1029, 6, 1011, 1000, 0, false, NULL, 1795292126689, NULL, NULL);
INSERT INTO public.place VALUES ('', 0, 0, 0, 0, 0, false, NULL, 0, NULL, NULL);
INSERT INTO public.principal VALUES (1001, 1000, 20, 'admin', NULL, true, 'admin', 1795292097440, NULL, NULL, 0, 0, NULL);
INSERT INTO public.principal VALUES (1005, 1000, 20, 'owner', NULL, true, 'admin', 1795292098488, NULL, NULL, 0, 0, NULL);
INSERT INTO public.principal VALUES (1006, 1000, 20, 'reader', NULL, true, 'admin', 1795292098730, NULL, NULL, 0, 0, NULL);
INSERT INTO public.principal VALUES (1007, 1000, 20, 'stranger', NULL, true, 'admin', 1795292098881, NULL, NULL, 0, 0, NULL);
INSERT INTO public.principal VALUES (1008, 1000, 20, 'ana', NULL, true, 'admin', 1795292099013, NULL, NULL, 0, 0, NULL);
INSERT INTO public.principal VALUES (1009, 1000, 21, 'crew', NULL, true, 'admin', 1795292099146, NULL, NULL, 0, 0, NULL);
INSERT INTO public.protection VALUES (1014, 1002, false, 'owner', 1795292128982);
INSERT INTO public.role VALUES (1031, 1000, 'hands', 'admin', 1795292127062, 'admin', 1795292127062, 0, '\x0a020801');
INSERT INTO public.role VALUES (1032, 1000, 'readers', 'admin', 1795292127203, 'admin', 1795292127203, 0, '\x0a020801');
INSERT INTO public.role_member VALUES (1006, 1032);
INSERT INTO public.store VALUES (1, 3986412585910861, 1, 1000, ': restricted', 'simple');
INSERT INTO public.tag_object VALUES (1013, 1019);
INSERT INTO public.token VALUES (1004, 'admin', 'admin.token', '\xf9ad42f0bdac27fbe8ab59546839a8fb589fa52dd301d717376989a0f7aabceb', 1795292098074, NULL, false, 'proven', 1004, 'api', NULL, NULL, NULL, 0, NULL);
INSERT INTO public.token VALUES (1036, 'admin', 'laptop', '\xfcaa468a74a47e240202762be66c2b3bac7b22f9fea6a1c8d259d65197d9145c', 1795292129007, NULL, false, 'believed', 1036, 'api', NULL, NULL, NULL, 0, NULL);
INSERT INTO public.trash VALUES (1035, 1002, 1013, 'owner', 1005, 1795292128713, 1795896928713, false);
SELECT pg_catalog.setval('public.limnos_id', 1036, true);
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

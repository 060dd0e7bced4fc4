{{ config(materialized='incremental', incremental_strategy='append', database='lake', schema='curated') }}
select customer from {{ ref('totals') }} where total > 10

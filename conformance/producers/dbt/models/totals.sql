{{ config(materialized='incremental', incremental_strategy='append', database='lake', schema='curated') }}
select customer, sum(amount) as total from {{ source('raw', 'orders') }} group by customer

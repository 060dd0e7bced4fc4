# SPDX-License-Identifier: Apache-2.0
"""TPC-H's 22 queries, in SQL++ and in Spark SQL.

Job: text. Parameters are the specification's validation parameters. Numbers are doubles and not decimals, in both.
Where several orders are correct, both use the same.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Both(NamedTuple):
    """One query in both languages."""

    sqlpp: str
    plain: str


QUERIES: dict[int, Both] = {
    1: Both(
        """
SELECT l_returnflag, l_linestatus, sum(l.l_quantity) AS sum_qty, sum(l.l_extendedprice) AS sum_base_price,
       sum(l.l_extendedprice * (1 - l.l_discount)) AS sum_disc_price,
       sum(l.l_extendedprice * (1 - l.l_discount) * (1 + l.l_tax)) AS sum_charge,
       avg(l.l_quantity) AS avg_qty, avg(l.l_extendedprice) AS avg_price, avg(l.l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem l WHERE l.l_shipdate <= date('1998-09-02')
GROUP BY l.l_returnflag AS l_returnflag, l.l_linestatus AS l_linestatus
ORDER BY l_returnflag, l_linestatus""",
        """
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem WHERE l_shipdate <= date '1998-09-02' GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    ),
    2: Both(
        """
SELECT s.s_acctbal, s.s_name, n.n_name, p.p_partkey, p.p_mfgr, s.s_address, s.s_phone, s.s_comment
FROM part p, supplier s, partsupp ps, nation n, region r
WHERE p.p_partkey = ps.ps_partkey AND s.s_suppkey = ps.ps_suppkey AND p.p_size = 15 AND p.p_type LIKE '%BRASS'
  AND s.s_nationkey = n.n_nationkey AND n.n_regionkey = r.r_regionkey AND r.r_name = 'EUROPE'
  AND ps.ps_supplycost = (SELECT VALUE min(ps2.ps_supplycost) FROM partsupp ps2, supplier s2, nation n2, region r2
                          WHERE p.p_partkey = ps2.ps_partkey AND s2.s_suppkey = ps2.ps_suppkey AND s2.s_nationkey = n2.n_nationkey
                            AND n2.n_regionkey = r2.r_regionkey AND r2.r_name = 'EUROPE')[0]
ORDER BY s.s_acctbal DESC, n.n_name, s.s_name, p.p_partkey LIMIT 100""",
        """
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM part, supplier, partsupp, nation, region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS' AND s_nationkey = n_nationkey
  AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
  AND ps_supplycost = (SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
                       WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
                         AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    ),
    3: Both(
        """
SELECT l_orderkey, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer c, orders o, lineitem l
WHERE c.c_mktsegment = 'BUILDING' AND c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey
  AND o.o_orderdate < date('1995-03-15') AND l.l_shipdate > date('1995-03-15')
GROUP BY l.l_orderkey AS l_orderkey, o.o_orderdate AS o_orderdate, o.o_shippriority AS o_shippriority
ORDER BY revenue DESC, o_orderdate LIMIT 10""",
        """
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    ),
    4: Both(
        """
SELECT o_orderpriority, count(*) AS order_count FROM orders o
WHERE o.o_orderdate >= date('1993-07-01') AND o.o_orderdate < date('1993-10-01')
  AND EXISTS (SELECT VALUE l FROM lineitem l WHERE l.l_orderkey = o.o_orderkey AND l.l_commitdate < l.l_receiptdate)
GROUP BY o.o_orderpriority AS o_orderpriority ORDER BY o_orderpriority""",
        """
SELECT o_orderpriority, count(*) AS order_count FROM orders
WHERE o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-10-01'
  AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    ),
    5: Both(
        """
SELECT n_name, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue
FROM customer c, orders o, lineitem l, supplier s, nation n, region r
WHERE c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey AND l.l_suppkey = s.s_suppkey AND c.c_nationkey = s.s_nationkey
  AND s.s_nationkey = n.n_nationkey AND n.n_regionkey = r.r_regionkey AND r.r_name = 'ASIA'
  AND o.o_orderdate >= date('1994-01-01') AND o.o_orderdate < date('1995-01-01')
GROUP BY n.n_name AS n_name ORDER BY revenue DESC""",
        """
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
  AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1995-01-01'
GROUP BY n_name ORDER BY revenue DESC""",
    ),
    6: Both(
        """
SELECT sum(l.l_extendedprice * l.l_discount) AS revenue FROM lineitem l
WHERE l.l_shipdate >= date('1994-01-01') AND l.l_shipdate < date('1995-01-01') AND l.l_discount BETWEEN 0.05 AND 0.07
  AND l.l_quantity < 24""",
        """
SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1995-01-01' AND l_discount BETWEEN 0.05D AND 0.07D AND l_quantity < 24""",
    ),
    7: Both(
        """
SELECT supp_nation, cust_nation, l_year, sum(x.volume) AS revenue
FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, get_year(l.l_shipdate) AS l_year,
             l.l_extendedprice * (1 - l.l_discount) AS volume
      FROM supplier s, lineitem l, orders o, customer c, nation n1, nation n2
      WHERE s.s_suppkey = l.l_suppkey AND o.o_orderkey = l.l_orderkey AND c.c_custkey = o.o_custkey AND s.s_nationkey = n1.n_nationkey
        AND c.c_nationkey = n2.n_nationkey
        AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
        AND l.l_shipdate BETWEEN date('1995-01-01') AND date('1996-12-31')) AS x
GROUP BY x.supp_nation AS supp_nation, x.cust_nation AS cust_nation, x.l_year AS l_year
ORDER BY supp_nation, cust_nation, l_year""",
        """
SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, year(l_shipdate) AS l_year,
             l_extendedprice * (1 - l_discount) AS volume
      FROM supplier, lineitem, orders, customer, nation n1, nation n2
      WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey
        AND c_nationkey = n2.n_nationkey
        AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
        AND l_shipdate BETWEEN date '1995-01-01' AND date '1996-12-31')
GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    ),
    8: Both(
        """
SELECT o_year, sum(CASE WHEN x.nation = 'BRAZIL' THEN x.volume ELSE 0.0 END) / sum(x.volume) AS mkt_share
FROM (SELECT get_year(o.o_orderdate) AS o_year, l.l_extendedprice * (1 - l.l_discount) AS volume, n2.n_name AS nation
      FROM part p, supplier s, lineitem l, orders o, customer c, nation n1, nation n2, region r
      WHERE p.p_partkey = l.l_partkey AND s.s_suppkey = l.l_suppkey AND l.l_orderkey = o.o_orderkey AND o.o_custkey = c.c_custkey
        AND c.c_nationkey = n1.n_nationkey AND n1.n_regionkey = r.r_regionkey AND r.r_name = 'AMERICA'
        AND s.s_nationkey = n2.n_nationkey AND o.o_orderdate BETWEEN date('1995-01-01') AND date('1996-12-31')
        AND p.p_type = 'ECONOMY ANODIZED STEEL') AS x
GROUP BY x.o_year AS o_year ORDER BY o_year""",
        """
SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0.0D END) / sum(volume) AS mkt_share
FROM (SELECT year(o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
      FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
      WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
        AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
        AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN date '1995-01-01' AND date '1996-12-31'
        AND p_type = 'ECONOMY ANODIZED STEEL')
GROUP BY o_year ORDER BY o_year""",
    ),
    9: Both(
        """
SELECT nation, o_year, sum(x.amount) AS sum_profit
FROM (SELECT n.n_name AS nation, get_year(o.o_orderdate) AS o_year,
             l.l_extendedprice * (1 - l.l_discount) - ps.ps_supplycost * l.l_quantity AS amount
      FROM part p, supplier s, lineitem l, partsupp ps, orders o, nation n
      WHERE s.s_suppkey = l.l_suppkey AND ps.ps_suppkey = l.l_suppkey AND ps.ps_partkey = l.l_partkey AND p.p_partkey = l.l_partkey
        AND o.o_orderkey = l.l_orderkey AND s.s_nationkey = n.n_nationkey AND p.p_name LIKE '%green%') AS x
GROUP BY x.nation AS nation, x.o_year AS o_year ORDER BY nation, o_year DESC""",
        """
SELECT nation, o_year, sum(amount) AS sum_profit
FROM (SELECT n_name AS nation, year(o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
      FROM part, supplier, lineitem, partsupp, orders, nation
      WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
        AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%')
GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    ),
    10: Both(
        """
SELECT c_custkey, c_name, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
FROM customer c, orders o, lineitem l, nation n
WHERE c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey AND o.o_orderdate >= date('1993-10-01')
  AND o.o_orderdate < date('1994-01-01') AND l.l_returnflag = 'R' AND c.c_nationkey = n.n_nationkey
GROUP BY c.c_custkey AS c_custkey, c.c_name AS c_name, c.c_acctbal AS c_acctbal, c.c_phone AS c_phone, n.n_name AS n_name,
         c.c_address AS c_address, c.c_comment AS c_comment
ORDER BY revenue DESC LIMIT 20""",
        """
SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= date '1993-10-01' AND o_orderdate < date '1994-01-01'
  AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment ORDER BY revenue DESC LIMIT 20""",
    ),
    11: Both(
        """
SELECT ps_partkey, sum(ps.ps_supplycost * ps.ps_availqty) AS total FROM partsupp ps, supplier s, nation n
WHERE ps.ps_suppkey = s.s_suppkey AND s.s_nationkey = n.n_nationkey AND n.n_name = 'GERMANY'
GROUP BY ps.ps_partkey AS ps_partkey
HAVING sum(ps.ps_supplycost * ps.ps_availqty) >
  (SELECT VALUE sum(ps2.ps_supplycost * ps2.ps_availqty) * 0.0001 FROM partsupp ps2, supplier s2, nation n2
   WHERE ps2.ps_suppkey = s2.s_suppkey AND s2.s_nationkey = n2.n_nationkey AND n2.n_name = 'GERMANY')[0]
ORDER BY total DESC, ps_partkey""",
        """
SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS total FROM partsupp, supplier, nation
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
GROUP BY ps_partkey
HAVING sum(ps_supplycost * ps_availqty) >
  (SELECT sum(ps_supplycost * ps_availqty) * 0.0001D FROM partsupp, supplier, nation
   WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
ORDER BY total DESC, ps_partkey""",
    ),
    12: Both(
        """
SELECT l_shipmode, sum(CASE WHEN o.o_orderpriority = '1-URGENT' OR o.o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
       sum(CASE WHEN o.o_orderpriority != '1-URGENT' AND o.o_orderpriority != '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
FROM orders o, lineitem l
WHERE o.o_orderkey = l.l_orderkey AND l.l_shipmode IN ['MAIL', 'SHIP'] AND l.l_commitdate < l.l_receiptdate
  AND l.l_shipdate < l.l_commitdate AND l.l_receiptdate >= date('1994-01-01') AND l.l_receiptdate < date('1995-01-01')
GROUP BY l.l_shipmode AS l_shipmode ORDER BY l_shipmode""",
        """
SELECT l_shipmode, sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
       sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
FROM orders, lineitem
WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
  AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1995-01-01'
GROUP BY l_shipmode ORDER BY l_shipmode""",
    ),
    13: Both(
        """
SELECT c_count, count(*) AS custdist
FROM (SELECT c_custkey, count(o.o_orderkey) AS c_count
      FROM customer c LEFT OUTER JOIN orders o ON c.c_custkey = o.o_custkey AND o.o_comment NOT LIKE '%special%requests%'
      GROUP BY c.c_custkey AS c_custkey) AS x
GROUP BY x.c_count AS c_count ORDER BY custdist DESC, c_count DESC""",
        """
SELECT c_count, count(*) AS custdist
FROM (SELECT c_custkey, count(o_orderkey) AS c_count
      FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey)
GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    ),
    14: Both(
        """
SELECT 100.0 * sum(CASE WHEN p.p_type LIKE 'PROMO%' THEN l.l_extendedprice * (1 - l.l_discount) ELSE 0.0 END) /
       sum(l.l_extendedprice * (1 - l.l_discount)) AS promo_revenue
FROM lineitem l, part p
WHERE l.l_partkey = p.p_partkey AND l.l_shipdate >= date('1995-09-01') AND l.l_shipdate < date('1995-10-01')""",
        """
SELECT 100.0D * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0.0D END) /
       sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= date '1995-09-01' AND l_shipdate < date '1995-10-01'""",
    ),
    15: Both(
        """
WITH revenue AS (SELECT supplier_no, round(sum(l.l_extendedprice * (1 - l.l_discount)), 4) AS total_revenue FROM lineitem l
                 WHERE l.l_shipdate >= date('1996-01-01') AND l.l_shipdate < date('1996-04-01') GROUP BY l.l_suppkey AS supplier_no)
SELECT s.s_suppkey, s.s_name, s.s_address, s.s_phone, r.total_revenue
FROM supplier s, revenue r
WHERE s.s_suppkey = r.supplier_no AND r.total_revenue = (SELECT VALUE max(x.total_revenue) FROM revenue x)[0]
ORDER BY s.s_suppkey""",
        """
WITH revenue AS (SELECT l_suppkey AS supplier_no, round(sum(l_extendedprice * (1 - l_discount)), 4) AS total_revenue FROM lineitem
                 WHERE l_shipdate >= date '1996-01-01' AND l_shipdate < date '1996-04-01' GROUP BY l_suppkey)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM supplier, revenue WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY s_suppkey""",
    ),
    16: Both(
        """
SELECT p_brand, p_type, p_size, count(DISTINCT ps.ps_suppkey) AS supplier_cnt
FROM partsupp ps, part p
WHERE p.p_partkey = ps.ps_partkey AND p.p_brand != 'Brand#45' AND p.p_type NOT LIKE 'MEDIUM POLISHED%'
  AND p.p_size IN [49, 14, 23, 45, 19, 3, 36, 9]
  AND ps.ps_suppkey NOT IN (SELECT VALUE s.s_suppkey FROM supplier s WHERE s.s_comment LIKE '%Customer%Complaints%')
GROUP BY p.p_brand AS p_brand, p.p_type AS p_type, p.p_size AS p_size
ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
        """
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt
FROM partsupp, part
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    ),
    17: Both(
        """
SELECT sum(l.l_extendedprice) / 7.0 AS avg_yearly FROM lineitem l, part p
WHERE p.p_partkey = l.l_partkey AND p.p_brand = 'Brand#23' AND p.p_container = 'MED BOX'
  AND l.l_quantity < (SELECT VALUE 0.2 * avg(l2.l_quantity) FROM lineitem l2 WHERE l2.l_partkey = p.p_partkey)[0]""",
        """
SELECT sum(l_extendedprice) / 7.0D AS avg_yearly FROM lineitem, part
WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
  AND l_quantity < (SELECT 0.2D * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    ),
    18: Both(
        """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l.l_quantity) AS quantity
FROM customer c, orders o, lineitem l
WHERE o.o_orderkey IN (SELECT VALUE l_orderkey FROM lineitem l2 GROUP BY l2.l_orderkey AS l_orderkey HAVING sum(l2.l_quantity) > 300)
  AND c.c_custkey = o.o_custkey AND o.o_orderkey = l.l_orderkey
GROUP BY c.c_name AS c_name, c.c_custkey AS c_custkey, o.o_orderkey AS o_orderkey, o.o_orderdate AS o_orderdate, o.o_totalprice AS o_totalprice
ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
        """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
  AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
    ),
    19: Both(
        """
SELECT sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue FROM lineitem l, part p
WHERE (p.p_partkey = l.l_partkey AND p.p_brand = 'Brand#12' AND p.p_container IN ['SM CASE', 'SM BOX', 'SM PACK', 'SM PKG']
       AND l.l_quantity >= 1 AND l.l_quantity <= 11 AND p.p_size BETWEEN 1 AND 5
       AND l.l_shipmode IN ['AIR', 'AIR REG'] AND l.l_shipinstruct = 'DELIVER IN PERSON')
   OR (p.p_partkey = l.l_partkey AND p.p_brand = 'Brand#23' AND p.p_container IN ['MED BAG', 'MED BOX', 'MED PKG', 'MED PACK']
       AND l.l_quantity >= 10 AND l.l_quantity <= 20 AND p.p_size BETWEEN 1 AND 10
       AND l.l_shipmode IN ['AIR', 'AIR REG'] AND l.l_shipinstruct = 'DELIVER IN PERSON')
   OR (p.p_partkey = l.l_partkey AND p.p_brand = 'Brand#34' AND p.p_container IN ['LG CASE', 'LG BOX', 'LG PACK', 'LG PKG']
       AND l.l_quantity >= 20 AND l.l_quantity <= 30 AND p.p_size BETWEEN 1 AND 15
       AND l.l_shipmode IN ['AIR', 'AIR REG'] AND l.l_shipinstruct = 'DELIVER IN PERSON')""",
        """
SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
       AND l_quantity >= 1 AND l_quantity <= 11 AND p_size BETWEEN 1 AND 5
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
       AND l_quantity >= 10 AND l_quantity <= 20 AND p_size BETWEEN 1 AND 10
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_partkey = l_partkey AND p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
       AND l_quantity >= 20 AND l_quantity <= 30 AND p_size BETWEEN 1 AND 15
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')""",
    ),
    20: Both(
        """
SELECT s.s_name, s.s_address FROM supplier s, nation n
WHERE s.s_suppkey IN (SELECT VALUE ps.ps_suppkey FROM partsupp ps
                      WHERE ps.ps_partkey IN (SELECT VALUE p.p_partkey FROM part p WHERE p.p_name LIKE 'forest%')
                        AND ps.ps_availqty > (SELECT VALUE 0.5 * sum(l.l_quantity) FROM lineitem l
                                              WHERE l.l_partkey = ps.ps_partkey AND l.l_suppkey = ps.ps_suppkey
                                                AND l.l_shipdate >= date('1994-01-01') AND l.l_shipdate < date('1995-01-01'))[0])
  AND s.s_nationkey = n.n_nationkey AND n.n_name = 'CANADA'
ORDER BY s.s_name""",
        """
SELECT s_name, s_address FROM supplier, nation
WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
                    WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
                      AND ps_availqty > (SELECT 0.5D * sum(l_quantity) FROM lineitem
                                         WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
                                           AND l_shipdate >= date '1994-01-01' AND l_shipdate < date '1995-01-01'))
  AND s_nationkey = n_nationkey AND n_name = 'CANADA' ORDER BY s_name""",
    ),
    21: Both(
        """
SELECT s_name, count(*) AS numwait FROM supplier s, lineitem l1, orders o, nation n
WHERE s.s_suppkey = l1.l_suppkey AND o.o_orderkey = l1.l_orderkey AND o.o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT VALUE l2 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey != l1.l_suppkey)
  AND NOT EXISTS (SELECT VALUE l3 FROM lineitem l3
                  WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey != l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
  AND s.s_nationkey = n.n_nationkey AND n.n_name = 'SAUDI ARABIA'
GROUP BY s.s_name AS s_name ORDER BY numwait DESC, s_name LIMIT 100""",
        """
SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT * FROM lineitem l3
                  WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
  AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    ),
    22: Both(
        """
SELECT cntrycode, count(*) AS numcust, sum(x.c_acctbal) AS totacctbal
FROM (SELECT substr(c.c_phone, 0, 2) AS cntrycode, c.c_acctbal FROM customer c
      WHERE substr(c.c_phone, 0, 2) IN ['13', '31', '23', '29', '30', '18', '17']
        AND c.c_acctbal > (SELECT VALUE avg(c2.c_acctbal) FROM customer c2
                           WHERE c2.c_acctbal > 0.0 AND substr(c2.c_phone, 0, 2) IN ['13', '31', '23', '29', '30', '18', '17'])[0]
        AND NOT EXISTS (SELECT VALUE o FROM orders o WHERE o.o_custkey = c.c_custkey)) AS x
GROUP BY x.cntrycode AS cntrycode ORDER BY cntrycode""",
        """
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM (SELECT substring(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer
      WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
        AND c_acctbal > (SELECT avg(c_acctbal) FROM customer
                         WHERE c_acctbal > 0.0D AND substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
        AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey))
GROUP BY cntrycode ORDER BY cntrycode""",
    ),
}


def with_dates(kind: str) -> dict[int, Both]:
    """Return the queries for dates of a type: `date`, or `string`, which is compared as text."""
    if kind == "date":
        return dict(sorted(QUERIES.items()))
    return {
        number: Both(
            re.sub(r"date\(('[0-9-]+')\)", r"\1", both.sqlpp),
            re.sub(r"\byear\((\w+)\)", r"year(CAST(\1 AS DATE))", re.sub(r"\bdate ('[0-9-]+')", r"\1", both.plain)),
        )
        for number, both in sorted(QUERIES.items())
    }

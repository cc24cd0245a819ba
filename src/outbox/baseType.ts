/** In a statement on pg_attribute a: `base.type`, the oid of a column's type below all domains. */
export const baseType = `cross join lateral (
      with recursive below as (
        select a.atttypid as type, typbasetype as base from pg_type where oid = a.atttypid
        union all select oid, typbasetype from below join pg_type on oid = base
      ) select type from below where base = 0
    ) base`

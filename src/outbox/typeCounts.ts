/** How many rows of a type wait. */
export interface TypeCount {
  type: string
  waiting: number
}

/** Counts the types among the first rows that Postgres finds; $1: how many. */
export const typeCounts = (from: string, type: string, condition: string): string => `
  select type, count(*)::int as waiting from (select ${type} as type from ${from} where ${condition} limit $1) waiting
  group by type order by type`

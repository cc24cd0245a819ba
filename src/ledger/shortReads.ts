/**
 * How the daemon's sessions on the ledger have their statements planned. Each reads a few rows, in an index's order, and
 * there is an index for each. Nobody has counted those rows at the time: thousands come and go within a minute, and what
 * autovacuum knew of them is of another hour. Left to that, the planner reads the whole ledger and sorts it at every look
 * (half of the server's time in bench:engine, and more with every record that the ledger keeps).
 *
 * Bitmaps: rows pass through the small indexes fast and leave dead entries; a plain index scan clears them away as it meets
 * them, a bitmap scan reads all of them again each time (a quarter of the server's time).
 */
export const shortReads = {
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
} as const

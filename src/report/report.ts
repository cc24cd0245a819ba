import type { RowStatus } from '../record.ts'

export interface ReportDeps {
  deliver(limit: number, deliver: (reports: RowStatus[]) => Promise<void>): Promise<number>
  write(statuses: readonly RowStatus[]): Promise<void>
}

const batchMost = 500

/**
 * Tells the outbox rows what has become of their submissions. While the ERP's database is away the reports stay due.
 *
 * @returns whether there may be more
 */
export async function reportOnce(deps: ReportDeps): Promise<boolean> {
  const delivered = await deps.deliver(batchMost, (reports) => deps.write(reports))
  return delivered === batchMost
}

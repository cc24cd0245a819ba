/** The ids of rows, in their order. */
export const idsOf = (rows: readonly { outboxId: string }[]): string[] => rows.map(({ outboxId }) => outboxId)

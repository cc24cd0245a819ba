import type { Mappings } from '../../mapping/loadMappings.ts'
import type { SourceField } from '../../mapping/sourceFields.ts'

/**
 * Says of each type that has a mapping file already that none is proposed, and what that file reads that these rows lack: it may
 * have been written for other records. Pure.
 *
 * @param fields of the payload; null where there was none to look at
 */
export function findMappedWarnings(
  types: readonly string[],
  mapped: Mappings,
  fields: readonly SourceField[] | null,
): string[] {
  return types.flatMap((type) => {
    const mapping = mapped.get(type)
    if (mapping === undefined) return []
    const read = mapping.fields.flatMap(({ from }) => (from === null ? [] : [firstStep(from)]))
    const has = new Set(fields?.map(({ path }) => firstStep(path)))
    const missing = fields === null ? [] : [...new Set(read)].filter((step) => !has.has(step))
    const lacks =
      missing.length === 0
        ? ': outboxd map --outbox shows what it makes of a row'
        : `. It reads ${missing.join(', ')}, which the payload of these rows lacks: where it is for other records, give these another type in outbox.yaml`
    return [`MAPPINGS_DIR has a mapping file of the type "${type}" already, so none is proposed for it${lacks}`]
  })
}

const firstStep = (path: string) => path.split(/[.[]/, 1)[0] ?? ''

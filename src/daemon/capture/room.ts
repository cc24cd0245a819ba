import type { WaitingKey } from '../../model.ts'

/**
 * What there is room for. Records that wait behind one that is held for a person take no place: they may stay for days, and
 * those that could be sent would find the window full. Of one key no more is taken while a small part of the window holds
 * records of it. Pure.
 *
 * @param windowMax at most so many records are queued
 */
export function roomIn(
  { queued, lines }: { queued: number; lines: readonly WaitingKey[] },
  windowMax: number,
): { limit: number; lineMax: number; exceptKeys: string[] } {
  const stuck = lines.reduce((sum, line) => sum + (line.waitsForPerson ? line.length : 0), 0)
  const lineMax = Math.max(1, Math.floor(windowMax / lineShare))
  const closed = lines.filter(({ length, waitsForPerson }) => waitsForPerson || length >= lineMax)
  return { limit: windowMax - (queued - stuck), lineMax, exceptKeys: closed.map(({ key }) => key) }
}

const lineShare = 40

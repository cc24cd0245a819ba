import type { Panel } from './panels.ts'

/** A heading with the lines of panels under it. */
export interface Row {
  title: string
  lines: readonly (readonly Panel[])[]
}

/** Gives each panel its place and an id. @throws Error if a line is wider than 24 columns */
export function layOut(rows: readonly Row[]): object[] {
  const placed: object[] = []
  let y = 0
  for (const { title, lines } of rows) {
    placed.push({
      id: placed.length + 1,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: 24, h: 1 },
    })
    y += 1
    for (const line of lines) {
      let x = 0
      for (const { width, height, ...panel } of line) {
        placed.push({ id: placed.length + 1, ...panel, gridPos: { x, y, w: width, h: height } })
        x += width
      }
      if (x > 24) throw new Error(`${title}: a line is ${x} columns wide`)
      y += Math.max(...line.map(({ height }) => height))
    }
  }
  return placed
}

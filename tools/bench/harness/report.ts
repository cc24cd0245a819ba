import { cpus, loadavg } from 'node:os'

export { percentile } from './workloads.ts'

/** Prints a table in Markdown, which is readable on a terminal and can be pasted into docs/why/performance.md. */
export function printTable(columns: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = columns.map((column, i) => Math.max(3, column.length, ...rows.map((row) => (row[i] ?? '').length)))
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => pad(cell, widths[i] ?? 0, i)).join(' | ')} |`
  const rule = widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  process.stdout.write(`${[line(columns), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n')}\n\n`)
}

export function say(message: string): void {
  process.stdout.write(`${message}\n\n`)
}

/** Prints the machine, the time, and how busy the machine was, because every figure depends on these. */
export function sayWhere(title: string): void {
  const processors = cpus()
  const busy = loadavg()[0] ?? 0
  process.stdout.write(
    `## ${title}\n\n${new Date().toISOString().slice(0, 16)}Z, ${processors.length} cores of ${processors[0]?.model.trim()}, ` +
      `Node ${process.versions.node}, load before ${busy.toFixed(1)}.\n`,
  )
}

/** Says whether a figure reached its target. */
export function verdict(reached: boolean): string {
  return reached ? 'reached' : 'MISSED'
}

function pad(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width)
}

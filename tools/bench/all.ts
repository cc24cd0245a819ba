import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readOptions } from './harness/readOptions.ts'

const options = readOptions(
  'bench:all: runs the benchmarks that docs/why/performance.md shows, one after the other, in 15 minutes.',
  {
    write: { default: false, help: 'puts the results between the two markers of docs/why/performance.md' },
    quick: { default: false, help: 'only shows that the benchmarks run: too short for useful figures' },
  },
)
const benches: string[][] = options.quick
  ? [
      ['latency', '--records', '20'],
      ['idle', '--seconds', '10'],
      ['budget', '--windows', '9', '--idle', '3'],
    ]
  : [['latency'], ['idle', '--seconds', '50'], ['budget', '--only', 'learned']]
const [begin, end] = ['<!-- figures: node tools/bench/all.ts --write -->', '<!-- end of figures -->']

const outputs: string[] = []
for (const bench of benches) outputs.push(await runBench(bench))
if (options.write) await writeFigures(joinOutputs())

/** Runs a benchmark and prints its output at its end. If it fails, prints that, and the others go on. */
async function runBench([name = '', ...args]: string[]): Promise<string> {
  process.stderr.write(`bench:${name} …\n`)
  const child = spawn(process.execPath, [join(import.meta.dirname, `${name}.ts`), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  if (!output.startsWith('## ')) output = `## bench:${name}\n\n\`\`\`\n${output.trim()}\n\`\`\`\n`
  if (code !== 0) output += `\nIt ended with exit code ${code}; what it said is on stderr.\n`
  process.stdout.write(`${output}\n`)
  return output
}

/** Joins the outputs for the page: only the first names the machine, and no empty line follows a heading. */
function joinOutputs(): string {
  const text = outputs.map((output) => output.trim().replace(/^(## .*)\n\n/, '$1\n')).join('\n\n')
  const machine = /, \d+ cores of .*?, Node [\d.]+/.exec(text)?.[0] ?? ''
  const [before = '', ...after] = machine === '' ? [text] : text.split(machine)
  return after.length === 0 ? before : `${before}${machine}${after.join('')}`
}

async function writeFigures(figures: string): Promise<void> {
  const path = join(import.meta.dirname, '..', '..', 'docs', 'why', 'performance.md')
  const page = await readFile(path, 'utf8')
  const [before, after] = [page.indexOf(begin), page.indexOf(end)]
  if (before === -1 || after < before) throw new Error(`${path} lacks its two markers, ${begin} and ${end}`)
  await writeFile(path, `${page.slice(0, before + begin.length)}\n\n${figures.trim()}\n\n${page.slice(after)}`)
}

import { isObject, type PayloadValue, writeJson } from '../yaml/exactJson.ts'
import { findNearestWord } from '../yaml/nearestWord.ts'
import type { YamlDocument, YamlPath } from '../yaml/yamlDocument.ts'
import type { Field, RenderBodyPart } from './mapping.ts'

/**
 * Compiles `body:` into a function that only joins pieces of JSON text.
 * @param names in the order of the values
 * @param fields null if the field has problems
 */
export function compileBody(
  body: PayloadValue,
  names: readonly string[],
  fields: readonly (Field | null)[],
  document: YamlDocument,
) {
  const compiler: Compiler = { names, fields, document, used: new Set() }
  const render = compileValue(body, ['body'], compiler)
  return { render, used: compiler.used }
}

interface Compiler {
  readonly names: readonly string[]
  readonly fields: readonly (Field | null)[]
  readonly document: YamlDocument
  readonly used: Set<string>
}

type Piece = { kind: 'text'; text: string } | { kind: 'field'; index: number } | { kind: 'submission' }

function compileValue(value: PayloadValue, path: YamlPath, compiler: Compiler): RenderBodyPart {
  if (typeof value === 'string') return compileText(value, path, compiler)
  if (Array.isArray(value)) return compileArray(value, path, compiler)
  if (isObject(value)) return compileObject(Object.entries(value), path, compiler)
  const text = writeJson(value)
  return () => text
}

function compileArray(items: readonly PayloadValue[], path: YamlPath, compiler: Compiler): RenderBodyPart {
  const renders = items.map((item, i) => compileValue(item, [...path, i], compiler))
  return (values, id) => `[${renders.map((render) => render(values, id)).filter((text) => text !== null)}]`
}

function compileObject(entries: readonly [string, PayloadValue][], path: YamlPath, compiler: Compiler): RenderBodyPart {
  const members = entries.map(([key, value]) => {
    const at = [...path, key]
    if (key.includes('${')) compiler.document.reportKey(at, 'a key cannot contain ${…}')
    return { prefix: `${JSON.stringify(key)}:`, render: compileValue(value, at, compiler) }
  })
  return (values, id) => {
    let text = ''
    for (const { prefix, render } of members) {
      const part = render(values, id)
      if (part !== null) text += (text === '' ? '' : ',') + prefix + part
    }
    return `{${text}}`
  }
}

function compileText(text: string, path: YamlPath, compiler: Compiler): RenderBodyPart {
  const pieces = splitText(text, path, compiler)
  const [only] = pieces
  if (pieces.length === 1 && only?.kind === 'field') {
    const { index } = only
    return (values) => values[index] ?? null
  }
  if (pieces.every((piece) => piece.kind === 'text')) {
    const json = JSON.stringify(text)
    return () => json
  }
  for (const piece of pieces) if (piece.kind === 'field') checkInsideText(piece.index, path, compiler)
  return (values, id) => JSON.stringify(pieces.map((piece) => readPiece(piece, values, id)).join(''))
}

function splitText(text: string, path: YamlPath, compiler: Compiler): Piece[] {
  // The parts with an odd index are those between ${ and }.
  return text.split(/\$\{([^{}]*)\}/).flatMap((part, i) => {
    if (i % 2 === 1) return compileReference(part.trim(), path, compiler)
    if (part.includes('${')) compiler.document.report(path, '"${" must be followed by a name and "}"')
    return part === '' ? [] : { kind: 'text', text: part }
  })
}

function compileReference(name: string, path: YamlPath, compiler: Compiler): Piece {
  if (name === 'submission.id') return { kind: 'submission' }
  const index = compiler.names.indexOf(name)
  if (index < 0) {
    const meant = findNearestWord(name, [...compiler.names, 'submission.id'])
    const hint = meant === null ? '' : `; did you mean "${meant}"?`
    compiler.document.report(path, `\${${name}} is not defined under fields${hint}`)
    if (meant !== null) compiler.used.add(meant) // so that the meant field is not reported as unused, too
  } else compiler.used.add(name)
  return { kind: 'field', index }
}

function checkInsideText(index: number, path: YamlPath, compiler: Compiler): void {
  const field = compiler.fields[index]
  if (field === null || field === undefined) return
  const inside = `\${${field.name}} stands inside a longer text`
  if (field.spec.type === 'array') compiler.document.report(path, `${inside}, but it is an array`)
  else if (!field.required && field.constantOrDefault === null) {
    compiler.document.report(path, `${inside} and can be missing: make it required or give it a default`)
  }
}

function readPiece(piece: Piece, values: readonly (string | null)[], id: string): string {
  if (piece.kind === 'text') return piece.text
  if (piece.kind === 'submission') return id
  const json = values[piece.index] ?? ''
  return json.startsWith('"') ? JSON.parse(json) : json
}

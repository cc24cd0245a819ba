import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mapRecord } from '../../src/mapping/mapRecord.ts'
import { readMapping } from '../../src/mapping/readMapping.ts'
import { anyString } from '../support/anyString.ts'
import { numRuns } from './mappingOf.ts'

/** Every problem as line:column message. */
function problemsOf(text: string): string[] {
  return readMapping('test.yaml', text).problems.map(({ line, column, message }) => `${line}:${column} ${message}`)
}

/** The problems of a file whose only field is written `options`, each with the word that it points at. */
function problemsOfField(options: string): string[] {
  const text = `type: t\nendpoint: data\nfields:\n  v: { ${options} }\nbody:\n  v: \${v}\n`
  return readMapping('test.yaml', text).problems.map(({ line, column, message }) => {
    const [word] =
      text
        .split('\n')
        [line - 1]?.slice(column - 1)
        .match(/^("[^"]*"|[^ :,}\]]*)/) ?? []
    return `${word} > ${message}`
  })
}

/** A file whose body is `body`, from line 6 on; field v is optional text, w is an array. */
function problemsOfBody(body: string): string[] {
  const fields = '  v: { from: v, type: string }\n  w: { from: w, type: array, default: [] }'
  return problemsOf(`type: t\nendpoint: data\nfields:\n${fields}\nbody:\n${body}\n  x: ["\${v}", "\${w}"]\n`)
}

describe('a problem at the top of the file', () => {
  test.each([
    ['', ['1:1 the file is empty']],
    ['# only a comment\n', ['1:1 the file is empty']],
    ['text', ['1:1 the file must be keys with values, and is text']],
    [
      'endpoint: data',
      [
        '1:1 "type" is missing: text (quote it if it looks like a number)',
        '1:1 "fields" is missing: keys with values',
        '1:1 "body" is missing: keys with values',
      ],
    ],
    [
      'type: t\nendpoint: order\nfields: {}\nbody: {}',
      ['2:11 "endpoint" must be data or orders, and is "order"; did you mean "orders"?'],
    ],
    [
      'type: 5\nendpont: data\nfields: {}\nbody: {}',
      [
        '1:1 "endpoint" is missing: data or orders',
        '1:7 "type" must be text (quote it if it looks like a number), and is a number',
        '2:1 unknown key "endpont"; did you mean "endpoint"?',
      ],
    ],
    ['type: t\nendpoint: data\ntrack: no\nfields: {}\nbody: {}', ['3:8 "track" must be true or false, and is text']],
    ['type: ""\nendpoint: data\nfields: {}\nbody: {}', ['1:7 "type" is empty']],
    [
      'type: t\nendpoint: data\nfields: []\nbody: x',
      ['3:9 "fields" must be keys with values, and is an array', '4:7 "body" must be keys with values, and is text'],
    ],
    [
      'type: t\nendpoint: data\nfields:\n  1st: { from: a, type: string }\nbody: {}',
      ['4:3 "1st" cannot be a field\'s name: letters, digits, _ and -, not beginning with a digit'],
    ],
  ])('%j', (text, problems) => {
    expect(problemsOf(text)).toEqual(problems)
  })
})

describe('a problem of a field', () => {
  const types = 'one of string, enum, uuid, boolean, integer, decimal(10,2), datetime, array'
  test.each([
    ['from: v', [`v > "type" is missing: ${types}`]],
    ['from: v, type: strng', [`strng > unknown type "strng": ${types}; did you mean "string"?`]],
    ['from: v, type: 7', [`7 > "type" must be ${types}, and is a number`]],
    [
      'from: v, type: decimal',
      [
        'decimal > "type" must be written "decimal(digits,decimals)", in quotes within { }, for example "decimal(10,2)"',
      ],
    ],
    [
      'from: v, type: decimal(10,2)',
      [
        'decimal(10 > "type" must be written "decimal(digits,decimals)", in quotes within { }, for example "decimal(10,2)"',
        expect.stringMatching(/^2\) > unknown key "2\)"/),
      ],
    ],
    [
      'from: v, type: "decimal(2,3)"',
      [
        '"decimal(2,3)" > "decimal(2,3)" is not possible: decimal(digits, decimals) takes 1 to 100 digits in all, and no more decimals than digits',
      ],
    ],
    [
      'from: v, type: "decimal(0,0)"',
      [
        '"decimal(0,0)" > "decimal(0,0)" is not possible: decimal(digits, decimals) takes 1 to 100 digits in all, and no more decimals than digits',
      ],
    ],
    [
      'from: v, type: "decimal(1000,2)"',
      [
        '"decimal(1000,2)" > "decimal(1000,2)" is not possible: decimal(digits, decimals) takes 1 to 100 digits in all, and no more decimals than digits',
      ],
    ],
    ['from: v, type: string, requird: true', ['requird > unknown key "requird"; did you mean "required"?']],
    [
      'from: v, type: string, colour: red',
      [
        'colour > unknown key "colour": known are type, from, path, constant, required, default, trim, lookup, maxLength',
      ],
    ],
    ['fron: v, type: string', ['fron > unknown key "fron"; did you mean "from"?']],
    ['from: v, path: v, type: string', ['path > "path" and "from" are the same thing: write one of them']],
    ['path: a..b, type: string', ['a..b > "a..b" is not a path: write it like customer.addresses[0].city']],
    [
      'from: v, type: integer, maxLength: 3, round: half-up',
      ['maxLength > "maxLength" does not go with this type', 'round > "round" does not go with this type'],
    ],
    ['from: v, type: array, trim: true', ['trim > "trim" does not go with this type']],
    [
      'from: v, type: "decimal(9,2)", round: halfeven',
      ['halfeven > "round" must be half-even or half-up, and is "halfeven"; did you mean "half-even"?'],
    ],
    ['from: v, type: integer, as: text', ['text > "as" must be string, and is "text"']],
    ['from: v, type: enum', ['v > "values" is missing: a list']],
    ['from: v, type: enum, values: []', ['[ > "values" is empty']],
    [
      'from: v, type: enum, values: [a, 1]',
      ['1 > item 2 must be text (quote it if it looks like a number), and is a number'],
    ],
    ['from: v, type: string, maxLength: 0', ['0 > "maxLength" must be at least 1']],
    ['from: v, type: string, maxLength: 1.5', ['1.5 > "maxLength" must be a whole number, and is 1.5']],
    ['from: v, type: string, required: "true"', ['"true" > "required" must be true or false, and is text']],
    [
      'from: v, type: datetime, timezone: Europe/Berln',
      ['Europe/Berln > "Europe/Berln" is not a time zone; did you mean "Europe/Berlin"?'],
    ],
    ['from: v, type: datetime, timezone: CEST', ['CEST > "CEST" is not a time zone like Europe/Berlin']],
    ['type: string', ['v > needs "from", the path in the payload, or "constant"']],
    [
      'constant: x, from: v, type: string, required: true',
      ['from > "from" has no meaning with "constant"', 'required > "required" has no meaning with "constant"'],
    ],
    ['constant: 1.234, type: "decimal(9,2)"', ['1.234 > "constant" has 3 decimals, decimal(9,2) takes 2: "1.234"']],
    ['constant: , type: string', [' > "constant" has no value']],
    ['from: v, type: integer, default: x', ['x > "default" is not a plain number like 1234.50: "x"']],
    [
      'from: v, type: string, default: 007',
      ['007 > 007 is not a number as JSON writes it: write digits, or quote it to make it text'],
    ],
    [
      'from: v, type: "decimal(9,2)", default: .nan',
      ['.nan > .nan is not a number as JSON writes it: write digits, or quote it to make it text'],
    ],
    ['from: v, type: enum, values: [a], lookup: { X: a, Y: b }', ['b > the lookup\'s "Y" is not one of a: "b"']],
    ['from: v, type: string, lookup: {}', ['{ > "lookup" has no entry, so no value could be sent']],
    ['from: a..b, type: string', ['a..b > "a..b" is not a path: write it like customer.addresses[0].city']],
    ['from: "a[-1]", type: string', ['"a[-1]" > "a[-1]" is not a path: write it like customer.addresses[0].city']],
    ['from: "[0].a", type: string', ['"[0].a" > "[0].a" begins with an index, but a payload is an object']],
    ['from: v, type: string, type: enum', ['type > this key is given twice']],
  ])('{ %s }', (options, problems) => {
    expect(problemsOfField(options)).toEqual(problems)
  })

  test('a field must be keys with values', () => {
    expect(problemsOf('type: t\nendpoint: data\nfields:\n  v: string\nbody:\n  v: ${v}')).toEqual([
      '4:6 "v" must say where it comes from and what it is: { from: …, type: … }',
    ])
  })
})

describe('a problem of the body', () => {
  test.each([
    ['  a: ${vv}', ['7:6 ${vv} is not defined under fields; did you mean "v"?']],
    ['  a: ${submision.id}', ['7:6 ${submision.id} is not defined under fields; did you mean "submission.id"?']],
    ['  a: ${v', ['7:6 "${" must be followed by a name and "}"']],
    ['  a: x ${}', ['7:6 ${} is not defined under fields']],
    [
      '  a: no ${v}',
      ['7:6 ${v} stands inside a longer text and can be missing: make it required or give it a default'],
    ],
    ['  a: no ${w}', ['7:6 ${w} stands inside a longer text, but it is an array']],
    ['  ${v}: a', ['7:3 a key cannot contain ${…}']],
    ['  a: 0x1F', ['7:6 0x1F is not a number as JSON writes it: write digits, or quote it to make it text']],
    ['  a: &x 1', ['7:9 anchors and aliases (&name, *name) are not read here: write the value out, or quote it']],
    ['  a: !!binary aGk=', ['7:15 the tag tag:yaml.org,2002:binary is not read here: leave it out, or quote it']],
    ['  ? [a]\n  : b', ['7:5 a key must be plain text']],
    ['  __proto__: 1', ['7:3 "__proto__" cannot be a key']],
    ['  1: a\n  "1": b', ['8:3 "1" is given twice']],
    ['  a: 1\n  a: 2', ['8:3 this key is given twice']],
  ])('%j', (body, problems) => {
    expect(problemsOfBody(body)).toEqual(problems)
  })

  test('a field that the body never uses', () => {
    expect(problemsOf('type: t\nendpoint: data\nfields:\n  v: { from: v, type: string }\nbody:\n  a: 1')).toEqual([
      '4:3 the body never uses "v": put ${v} into it, or remove the field',
    ])
  })
})

describe('document', () => {
  const of = (document: string, source = 'source: select id from x where id = any($1)\n') =>
    readMapping('test.yaml', `type: t\nendpoint: data\n${source}document: ${document}\nfields: {}\nbody: { a: b }`)

  test('names a table, its key and a condition', () => {
    expect(of('{ table: \'"s.x"."T"\', key: id }').mapping?.document).toEqual({
      table: '"s.x"."T"',
      key: ['id'],
      condition: null,
    })
    expect(of('{ table: t, key: [a, b], condition: h.a > 1 }').mapping?.document).toEqual({
      table: 't',
      key: ['a', 'b'],
      condition: 'h.a > 1',
    })
  })

  test.each([
    ['{ table: t }', '"key" is missing'],
    ['{ table: t; drop, key: id }', 'must be a name as in SQL, such as public."Order"'],
    ['{ tabel: t, table: t, key: id }', 'unknown key "tabel"; did you mean "table"?'],
  ])('a problem: %s', (document, message) => {
    expect(of(document).problems.map((each) => each.message)).toEqual([expect.stringContaining(message)])
  })

  test('needs a query', () => {
    expect(of('{ table: t, key: id }', '').problems).toMatchObject([
      { line: 3, message: expect.stringContaining('needs "source"') },
    ])
  })
})

test('the error about text that is not YAML names the line', () => {
  expect(problemsOf('type: t\nfields: {\n')[0]).toMatch(/^3:1 not readable as YAML: /)
  expect(problemsOf('type: t\n---\ntype: u\n')[0]).toMatch(/^\d:\d one document per file/)
  expect(problemsOf('type: *x\n')).toContainEqual(expect.stringMatching(/^1:7 .*aliases/))
})

test('a file that would exhaust the stack or the memory is a problem, not a crash', () => {
  for (const open of ['[', '{a: ', '- ']) {
    const problems = problemsOf(open.repeat(20_000))
    expect(problems).toContainEqual(expect.stringContaining('nested too deeply to read'))
    expect(problems.length).toBeLessThan(20)
  }
  expect(problemsOf(`body: ${'['.repeat(200)}${']'.repeat(200)}`)).toContainEqual(
    expect.stringContaining('nested deeper than 100 levels'),
  )
  expect(problemsOf(`a: ${'x'.repeat(1_000_000)}`)).toEqual(['1:1 the file is longer than 1000000 characters'])
})

test('all problems of a file are reported at once, in the order of its lines', () => {
  const text = [
    'type: t',
    'endpoint: data',
    'fields:',
    '  a: { from: a, type: strin }',
    '  b: { from: b..c, type: integer, default: x }',
    '  c: { from: c, type: string }',
    'body: { a: "${aa}", b: "${b}", d: 0x1 }',
  ].join('\n')
  expect(problemsOf(text).map((problem) => problem.slice(0, problem.indexOf(' ')))).toEqual([
    '4:23',
    '5:14',
    '5:44',
    '6:3',
    '7:12',
    '7:35',
  ])
})

describe('a file with one changed character', () => {
  const samples = {
    data: readFileSync('mappings/data.yaml', 'utf8'),
    order: readFileSync('mappings/order.yaml', 'utf8'),
  }
  const everything = `%YAML 1.2
---
type: everything
endpoint: orders
track: false
fields:
  amount:
    from: 'lines[0]["net.amount"]'
    type: decimal(10,2)
    round: half-even
    as: string
    default: 0.10
  day: { from: day, type: datetime, timezone: Europe/Berlin, trim: true }
  paid: { from: paid, type: boolean, lookup: { J: true, N: false, 1: true }, required: true }
  unit: { constant: "EUR", type: enum, values: [EUR, USD] }
  lines: { from: lines, type: array }
  who: { from: who, type: uuid }
  count: { from: count, type: integer, default: -1 }
body:
  ref: >-
    \${submission.id}: \${unit}
    \${count}
  list: [ "\${amount}", "\${day}", 1.50, ~, true ]
  "quoted \\u00e9": { paid: "\${paid}", lines: "\${lines}", who: "\${who}" }
`
  const payloads = [
    '{"customerId":"C1","orderDate":"2026-11-20T23:54:00Z","amount":1.5,"field2":"x","items":[1]}',
    '{"customerId":"123e4567-e89b-12d3-a456-426614174000","items":[{"n":1.10}]}',
    '{"lines":[{"net.amount":"1.005"}],"day":"2026-11-20","paid":"J","count":3}',
  ]
  const character = fc.oneof(
    fc.constantFrom(...' \n\t:{}[]\'"#&*!|>%@`,?-$\\~.0123456789eExabc\u0000\r\ufeff'),
    anyString({ minLength: 1, maxLength: 1 }),
  )
  const change = fc.constantFrom('replace', 'insert', 'remove')

  test('is valid before the change', () => {
    for (const text of [samples.data, samples.order, everything]) expect(problemsOf(text)).toEqual([])
  })

  test('means the same, is another valid mapping, or is an error that names a line; never a crash', () => {
    const text = fc.constantFrom(samples.data, samples.order, everything)
    fc.assert(
      fc.property(text, fc.nat(), character, change, (original, position, inserted, how) => {
        const at = position % original.length
        const changed =
          original.slice(0, at) + (how === 'remove' ? '' : inserted) + original.slice(at + (how === 'insert' ? 0 : 1))
        const { mapping, problems } = readMapping('changed.yaml', changed)
        expect(mapping === null).toBe(problems.length > 0)
        for (const { file, line, column, message } of problems) {
          expect(file).toBe('changed.yaml')
          expect(message).not.toBe('')
          expect(line).toBeGreaterThanOrEqual(1)
          expect(line).toBeLessThanOrEqual(changed.split('\n').length)
          expect(column).toBeGreaterThanOrEqual(1)
        }
        if (mapping === null) return
        for (const payload of payloads) {
          const mapped = mapRecord(mapping, payload, 'id')
          if (mapped.kind === 'mapped') expect(JSON.parse(mapped.body)).toBeTypeOf('object')
          else expect(mapped.errors.length).toBeGreaterThan(0)
        }
      }),
      { numRuns },
    )
  })
})

describe('the columns of lists', () => {
  const fileWith = (list: string) =>
    readMapping(
      'test.yaml',
      `type: t
endpoint: data
fields:
  note: { from: note, type: string }
  customer_id: { from: buyer.id, type: string }
  total: { from: total, type: "decimal(10,2)" }
body: { a: "\${note}", b: "\${customer_id}", c: "\${total}" }
${list}`,
    )
  const valuesOf = (list: string) =>
    fileWith(list).mapping?.list.map(({ heading, read }) => [
      heading,
      read({ note: 'n', buyer: { id: 'C1', name: 'a name' } }),
    ])

  test('are those that the file names, of fields or not', () => {
    expect(valuesOf('list: { Customer: buyer.name, Note: note }')).toEqual([
      ['Customer', { kind: 'found', value: 'a name' }],
      ['Note', { kind: 'found', value: 'n' }],
    ])
  })

  test('are the customer and the first amount if the file names none', () => {
    expect(valuesOf('')).toEqual([
      ['buyer.id', { kind: 'found', value: 'C1' }],
      ['total', { kind: 'missing' }],
    ])
  })

  test('are at most three, each a path', () => {
    const problems = (list: string) => fileWith(list).problems.map(({ message }) => message)
    expect(problems('list: { A: a, B: b, C: c, D: d }')).toEqual([expect.stringContaining('at most 3 columns')])
    expect(problems('list: { A: "[0]" }')).toEqual([expect.stringContaining('begins with an index')])
  })

  test('do not change the digest, so a change of them needs no restart', () => {
    expect(fileWith('list: { Customer: buyer.name }').mapping?.digest).toBe(fileWith('').mapping?.digest)
  })
})

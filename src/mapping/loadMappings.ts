import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { type Resource, resourceNames } from '../resources.ts'
import { type FileProblem, FilesInvalid, wholeFile } from '../yaml/yamlDocument.ts'
import type { Mapping } from './mapping.ts'
import { readMapping } from './readMapping.ts'

/** By record type. */
export type Mappings = ReadonlyMap<string, Mapping>

/**
 * The first resource that a mapping uses, because the client surely has access to it; else the first of all.
 */
export function firstMappedResource(mappings: Mappings): Resource {
  const used = [...mappings.values()].map(({ endpoint }) => endpoint)
  return resourceNames.find((resource) => used.includes(resource)) ?? resourceNames[0]
}

/**
 * Reads every mapping file of a folder: `*.yaml` and `*.yml`, but not `outbox.yaml`, hidden files and subfolders.
 * @throws FilesInvalid with every problem, also for an unreadable folder or file, or no mapping file
 */
export function loadMappings(dir: string): Mappings {
  const files = listFiles(dir)
  const problems = findMisnamedOutboxFiles(dir)
  const mappings = new Map<string, Mapping>()
  const fileByType = new Map<string, string>()
  for (const file of files) {
    const read = readMapping(file, readText(file, problems) ?? '')
    if (problems.at(-1)?.file === file) continue
    problems.push(...read.problems)
    if (read.type === null) continue
    const takenBy = fileByType.get(read.type)
    if (takenBy !== undefined) problems.push(read.repeatedTypeProblem(takenBy))
    else fileByType.set(read.type, file)
    if (read.mapping !== null) mappings.set(read.type, read.mapping)
  }
  if (problems.length > 0) throw new FilesInvalid(problems)
  return mappings
}

export function loadMappingsOrEmptyIfBroken(dir: string): Mappings {
  try {
    return loadMappings(dir)
  } catch (error) {
    if (error instanceof FilesInvalid) return new Map()
    throw error
  }
}

export const outboxFileName = 'outbox.yaml'
const outboxFileForm = /^outbox\.ya?ml$/i

/** @throws Error if the folder cannot be read */
export function findMisnamedOutboxFiles(dir: string): FileProblem[] {
  const misnamed = readdirSync(dir).filter((name) => outboxFileForm.test(name) && name !== outboxFileName)
  const message = `the file is not read: rename it to ${outboxFileName}, or remove it`
  return misnamed.map((name) => problemOf(path.join(dir, name), message))
}

function listFiles(dir: string): string[] {
  try {
    const entries = readdirSync(dir, { withFileTypes: true })
    const names = entries.filter((entry) => !entry.isDirectory() && isMappingFile(entry.name)).map(({ name }) => name)
    if (names.length > 0) return names.sort().map((name) => path.join(dir, name))
  } catch (error) {
    const why = `the folder cannot be read: ${(error as Error).message}; MAPPINGS_DIR names the folder of the mapping files`
    throw new FilesInvalid([problemOf(dir, why)])
  }
  throw new FilesInvalid([problemOf(dir, 'there is no mapping file (*.yaml) in this folder: nothing could be sent')])
}

function isMappingFile(name: string): boolean {
  return /^[^.].*\.ya?ml$/.test(name) && !outboxFileForm.test(name)
}

function readText(file: string, problems: FileProblem[]): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : (error as Error).message
    problems.push(problemOf(file, `the file cannot be read: ${reason}`))
    return null
  }
}

const problemOf = (file: string, message: string): FileProblem => ({ file, message, ...wholeFile })

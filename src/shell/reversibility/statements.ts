import { hasFlag, parseOptions } from "../programs/options.ts";
import { knownText } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";
import type { Reversibility } from "./forms.ts";

const lossReason = "deletes data of a database";
const changeReason = "changes a database";

/** The options of a database client. */
interface Client {
  /** Options whose value is a statement. */
  readonly statementFlags: string;
  readonly valueFlags: string;
  /** The number of operands before the statements; without it operands are not statements. */
  readonly skippedOperands?: number;
}

const sqlClients: Readonly<Record<string, Client>> = {
  psql: {
    statementFlags: "-c --command",
    valueFlags:
      "-d --dbname -f --file -h --host -L -o --output -p --port -P --pset -R -F -T -U --username -v --set --variable",
  },
  mysql: {
    statementFlags: "-e --execute",
    valueFlags: "-u --user -h --host -P --port -D --database -S --socket --default-character-set",
  },
  sqlite3: { statementFlags: "-cmd", valueFlags: "-init -separator -nullvalue -newline", skippedOperands: 1 },
  duckdb: { statementFlags: "-c -s -cmd", valueFlags: "-init -separator -nullvalue", skippedOperands: 1 },
  "clickhouse-client": {
    statementFlags: "-q --query",
    valueFlags: "-h --host -u --user --port --password -d --database",
  },
  sqlcmd: { statementFlags: "-Q -q", valueFlags: "-S -U -P -d -i -o -h -s -w" },
  cqlsh: {
    statementFlags: "-e --execute",
    valueFlags: "-u -p -k -f --file --username --password --keyspace",
  },
  cockroach: { statementFlags: "-e --execute", valueFlags: "--url --host --port -u --user -d --database" },
};

const sqlAliases: Readonly<Record<string, string>> = {
  mariadb: "mysql",
  mycli: "mysql",
  pgcli: "psql",
  sqlite: "sqlite3",
};

/** Judges the SQL statements in a client's words and input; those in files are unknown. */
export function judgeSqlClient(name: string, args: readonly Argument[], input?: string): Reversibility {
  const client = sqlClients[sqlAliases[name] ?? name];
  if (client === undefined) return "unknown";
  const options = parseOptions(args, {
    textFlags: client.statementFlags,
    valueFlags: client.valueFlags,
    hasSingleDashNames: client.skippedOperands !== undefined,
  });
  const given = options.flags.flatMap(({ value, isText }) => (isText && value ? [value] : []));
  const operands = client.skippedOperands === undefined ? [] : options.operands.slice(client.skippedOperands);
  const texts = [...given, ...operands].map(knownText);
  const readsInput = texts.length === 0 && input !== undefined && !hasFlag(options, "-f --file -i");
  return judgeTexts(readsInput ? [input] : texts, judgeSql);
}

/** Returns the strictest verdict on the texts; `unknown` without texts. */
function judgeTexts(
  texts: readonly (string | undefined)[],
  judgeText: (text: string) => Reversibility,
): Reversibility {
  const verdicts = texts.map((text) => (text === undefined ? "unknown" : judgeText(text)));
  const irreversible = verdicts.find((verdict) => typeof verdict === "object");
  if (irreversible !== undefined) return irreversible;
  return verdicts.length > 0 && verdicts.every((verdict) => verdict === "undoable") ? "undoable" : "unknown";
}

function judgeSql(text: string): Reversibility {
  const plain = text
    .replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ")
    .replace(/'(?:[^']|'')*'|"[^"]*"|`[^`]*`/g, "x");
  return judgeTexts(
    plain
      .split(";")
      .map((statement) => statement.trim())
      .filter((statement) => statement !== ""),
    judgeStatement,
  );
}

function judgeStatement(statement: string): Reversibility {
  const isCompound = /^(?:with|explain|do|begin)\b/i.test(statement);
  const words = isCompound ? statement : (/^\(*\s*\w+/.exec(statement)?.[0] ?? "");
  if (/\b(?:drop|delete|truncate)\b/i.test(words)) return { irreversible: lossReason };
  if (
    /\b(?:update|insert|alter|create|grant|revoke|merge|rename|vacuum|reindex|upsert|load|call|replace)\b/i.test(
      words,
    )
  )
    return { irreversible: changeReason };
  return /^\(*\s*(?:select|show|describe|desc|explain|with|values|table|use|pragma)\b|^[\\.](?:d|l|dt|tables|schema|conninfo|x|timing|z)/i.test(
    statement,
  )
    ? "undoable"
    : "unknown";
}

/** Judges the JavaScript of `mongosh --eval`. */
export function judgeMongo(args: readonly Argument[], input?: string): Reversibility {
  const { flags } = parseOptions(args, {
    textFlags: "--eval",
    valueFlags: "-u -p --host --port -f --file --username --password",
  });
  const texts = flags.flatMap(({ name, value }) => (name === "--eval" && value ? [knownText(value)] : []));
  return judgeTexts(texts.length > 0 ? texts : [input], (text) => {
    if (/\.(?:drop\w*|delete\w*|remove\w*|findOneAndDelete)\s*\(/.test(text))
      return { irreversible: lossReason };
    if (
      /\.(?:update\w*|insert\w*|replace\w*|findOneAnd\w+|findAndModify|bulkWrite|rename\w*|create\w*|save)\s*\(/.test(
        text,
      )
    )
      return { irreversible: changeReason };
    return "undoable";
  });
}

const redisReads =
  /^(?:get|mget|getrange|strlen|keys|scan|info|ping|ttl|pttl|type|exists|hget|hgetall|hmget|hkeys|hvals|hlen|hscan|lrange|llen|lindex|smembers|sismember|scard|sscan|zrange\w*|zcard|zscore|zscan|xrange|xlen|xinfo|dbsize|monitor|memory|object|time|echo|role|slowlog|latency|lastsave|command|pubsub|bitcount|getbit|dump)$/i;

/** Judges the command among the words of `redis-cli`. */
export function judgeRedis(args: readonly Argument[], input?: string): Reversibility {
  const { operands } = parseOptions(args, { valueFlags: "-h -p -s -a -u -n -r -i --user --pass -d -D -x" });
  if (operands.length === 0)
    return judgeTexts(input?.trim().split("\n") ?? [], (line) => {
      const [name, second] = line.trim().split(/\s+/);
      return judgeRedisCommand(name, second);
    });
  const [command, second] = operands;
  return judgeRedisCommand(command && knownText(command), second && knownText(second));
}

function judgeRedisCommand(name: string | undefined, second = ""): Reversibility {
  if (name === undefined) return "unknown";
  if (redisReads.test(name) || /^(?:list|get|info|count|help)$/i.test(second)) return "undoable";
  return { irreversible: /^(?:flush|del|unlink)/i.test(name) ? lossReason : changeReason };
}

export const sqlClientNames = [...Object.keys(sqlClients), ...Object.keys(sqlAliases)];

import type { CheckKind } from "../message/part.ts";
import { findCheckKinds } from "./checks.ts";

/**
 * A language's phrases for a successful check, and its words that make a sentence something other than a
 * claim.
 */
interface Language {
  readonly claims: readonly (readonly [CheckKind, RegExp])[];
  /** Negations, conditions, plans, wishes, doubts and reports of earlier runs. */
  readonly hedges: RegExp;
}

const english: Language = {
  claims: [
    [
      "test",
      /\b(?:tests?|specs?|test suites?|suite)\b(?:(?!\b(?:that|which|to|for|by|whether)\b)[\w\s,:()/&+%-]){0,40}?\b(?:pass(?:es|ed|ing)?(?!\s+(?:an?|the|in|it|them|its|their|through|along|as|to|data|values?|arguments?|null|undefined)\b)|succeed(?:s|ed)?|(?:is|are|stay|stays|remain|remains|were|was|all)\s+(?:all\s+)?(?:green|successful)|r(?:a|u)ns?\s+(?:successfully|cleanly))\b/i,
    ],
    ["test", /\bpass(?:es|ed|ing)?\s+(?:all|every|each)\s+(?:\w+\s+){0,3}tests?\b/i],
    [
      "build",
      /\b(?:build|compilation)\b[\w\s,:()-]{0,20}?\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is|was|stays)\s+(?:green|clean|successful)|(?:runs?|ran|complete[sd]?|finishe[sd])\s+(?:successfully|cleanly))\b/i,
    ],
    ["build", /\b(?:builds|compiles|compiled|built)\s+(?:successfully|cleanly|fine)\b/i],
    [
      "types",
      /\b(?:types?|type[- ]?check(?:s|er|ing)?|tsc|mypy|pyright)\b[\w\s,:()-]{0,20}?\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is|are|was)\s+(?:green|clean)|check(?:s|ed)?\s+(?:out|cleanly))\b/i,
    ],
    [
      "lint",
      /\b(?:lint(?:s|er|ing)?|eslint|ruff|clippy)\b[\w\s,:()-]{0,20}?\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is|are|was)\s+(?:green|clean))\b/i,
    ],
    [
      "check",
      /\b(?:all|the|every)\s+checks?\s+(?:\w+\s+)?(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is|are)\s+green)\b/i,
    ],
  ],
  hedges:
    /\b(?:not|no|never|none|neither|nor|cannot|without|should|would|could|can|may|might|must|will|shall|if|when|whenever|once|unless|until|till|whether|assum\w*|presum\w*|probably|likely|hopefully|expect\w*|suppos\w*|think|believe|ensure|sure|confirm that|verify|check that|need\w*|want\w*|try|trying|please|let|before|earlier|previously|originally|already passed|only then|so that|to make|to get|fail\w*|skipped|untested)\b|n['’]t\b|'ll\b|’ll\b/i,
};

const german: Language = {
  claims: [
    [
      "test",
      /\b(?:tests?|testsuite)\b[^.!?]{0,30}?\b(?:laufen|läuft|liefen|lief)\b[^.!?]{0,20}?\b(?:durch|erfolgreich|fehlerfrei)\b/i,
    ],
    [
      "test",
      /\b(?:tests?|testsuite)\b[^.!?]{0,30}?(?:\bsind\b|\bist\b|\bwaren\b|\bwar\b|\bwurden\b|\bwurde\b|\bbleiben\b)[^.!?]{0,20}?\b(?:grün|erfolgreich|bestanden)/i,
    ],
    ["test", /\b(?:tests?|testsuite)\s+(?:\w+\s+)?(?:bestehen|bestanden|besteht|bestanden haben)\b/i],
    ["build", /\b(?:build|kompilierung)\b[^.!?]{0,20}?\b(?:erfolgreich|läuft durch|lief durch|grün|klappt)/i],
  ],
  hedges:
    /\b(?:nicht|kein\w*|nie|ohne|sollt\w*|würd\w*|könnt\w*|kann|können|müss\w*|muss|dürf\w*|wenn|falls|sobald|ob|bis|bevor|vorher|zuvor|bitte|vermutlich|wahrscheinlich|hoffentlich|wird|werden|soll|sollen|noch|damit|sicherstellen|schlag\w*|fehlschl\w*)\b/i,
};

const french: Language = {
  claims: [
    [
      "test",
      /\btests?\b[^.!?]{0,25}?(?:\bpassent\b|\bpasse\b|\bréussissent\b|\bréussit\b|\bont réussi|\bsont passés|\bont (?:tous )?été réussis|\bsont (?:tous )?(?:au )?verts?\b|\bsont (?:tous )?réussis)/i,
    ],
    [
      "build",
      /\b(?:build|compilation)\b[^.!?]{0,20}?(?:\bpasse\b|\bréussit\b|\ba réussi|\best réussie?|\bréussie\b)/i,
    ],
  ],
  hedges:
    /(?:^|\s)(?:ne|pas|jamais|aucun\w*|sans|si|quand|lorsque|dès|devrai\w*|pourrai\w*|doit|doivent|peut|peuvent|avant|auparavant|jusqu\S*|probablement|sans doute|espér\w*|vérifi\w*|assur\w*|faut)(?=\s|$|,)|\bn['’]/i,
};

const spanish: Language = {
  claims: [
    [
      "test",
      /(?:^|[\s,¡])(?:pruebas|tests?)\b[^.!?]{0,25}?(?:pasan\b|pasaron\b|pasa\b|han pasado|están en verde|son exitosas|tienen éxito|se completaron con éxito|ejecutaron correctamente)/i,
    ],
    [
      "build",
      /(?:compilación|build)\b[^.!?]{0,20}?(?:pasa\b|tiene éxito|fue exitosa|es exitosa|se completó)|\bcompila (?:correctamente|sin errores)/i,
    ],
  ],
  hedges:
    /(?:^|\s)(?:no|nunca|ningun\w*|si|cuando|hasta|antes|deber\w*|debe\w*|podr\w*|puede\w*|probablemente|quizás?|espero|asegur\w*|verific\w*|hay que)(?=\s|$|,)/i,
};

const chinese: Language = {
  claims: [
    ["test", /测试(?:用例|套件)?(?:现在|现已|目前)?(?:全部|全都|都|均|已经|已|也|成功)*(?:通过|成功)/],
    ["test", /通过了(?:所有|全部)?(?:的)?(?:单元)?测试/],
    ["build", /(?:构建|编译)(?:已经|已|也|均)?(?:成功|通过)/],
  ],
  hedges:
    /未|没|不|无法|应该|应当|应能|如果|若|假如|是否|可能|也许|尚|待|请|确保|需要|希望|之前|一旦|吗|通过后/,
};

const japanese: Language = {
  claims: [
    [
      "test",
      /テスト(?:スイート)?[はがもを]?(?:現在)?(?:すべて|全て|全部|全件)?[がは]?(?:に)?(?:通[りっる]|パスし|成功し|合格し|成功です|グリーン)/,
    ],
    ["build", /(?:ビルド|コンパイル)[はがも]?(?:に)?(?:成功し|通[りっる])/],
  ],
  hedges:
    /ない|ませ|はず|もし|れば|たら|場合|かどうか|でしょう|ください|必要|未|前に|思[いう]|ように|か$|すると/,
};

const languages = [english, german, french, spanish, chinese, japanese];

/** Returns the checks that a text says have succeeded. Questions, conditions, quotes and code are not claims. */
export function findClaims(text: string): readonly CheckKind[] {
  const sentences = splitSentences(removeQuotes(text).replaceAll(noFailures, ""));
  const claimed = sentences.flatMap((sentence) =>
    languages.flatMap(({ claims, hedges }) =>
      hedges.test(sentence)
        ? []
        : claims.filter(([, pattern]) => pattern.test(sentence)).map(([kind]) => kind),
    ),
  );
  return [...new Set(claimed)];
}

/** A count of zero failures next to a success, which it does not negate. */
const noFailures =
  /\b(?:0|no|zero|without|with no|without any)\s+(?:failures?|failed|failing|errors?|warnings?|issues?)\b/gi;

/** Nouns that replace the code of a command: "`npm test` passes" is a claim. */
const nouns: Readonly<Record<CheckKind, string>> = {
  test: "the tests",
  build: "the build",
  types: "the type check",
  lint: "the linter",
  check: "all checks",
};

function removeQuotes(text: string): string {
  return text
    .replaceAll(/^[ \t]*(`{3,}|~{3,})[\s\S]*?(?:^[ \t]*\1[^\n]*$|$(?![\s\S]))/gm, "\n")
    .replaceAll(/^\s*>.*$/gm, "\n")
    .replaceAll(/`([^`\n]+)`/g, (_, code: string) => {
      const [kind] = findCheckKinds(code);
      return kind === undefined ? " CODE " : nouns[kind];
    })
    .replaceAll(/"[^"\n]*"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|『[^』\n]*』/g, " QUOTE ")
    .replaceAll(/[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}/g, "");
}

/** Splits a text into sentences without questions. */
function splitSentences(text: string): string[] {
  return text
    .split(/(?<=[.!?](?=\s)|[。！？])|[\n;；]/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== "" && !/[?？]["'”)]*$/.test(sentence));
}

/** Prompt texts are Markdown files that the bundler and the test runner import as strings. */
declare module "*.md" {
  const text: string;
  export default text;
}

// Finds subscribers in a table of the appliance; policy.txt is an example of its policy document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 3

// A short name for a declaration of the generated header.
typedef exports_switchyard_hooks_resolution_resolved_t resolved_t;

typedef struct {
  char *name;
  uint32_t table;  // the appliance's table
  resolver_option_u64_t valid;  // validity of an answer, in milliseconds
} policy_t;

static policy_t policy;

// Parses one line. Returns false if the line is malformed.
static bool read_line(policy_t *read, char *line) {
  char *words[MOST_WORDS], *rest, *end;
  size_t count = 0;
  for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
    if (count == 0 && word[0] == '#') return true;
    if (count == MOST_WORDS) return false;
    words[count++] = word;
  }
  if (count == 0) return true;
  if (count != 2) return false;
  if (strcmp(words[0], "table") == 0) {
    read->name = words[1];
    return true;
  }
  if (strcmp(words[0], "valid") != 0 || words[1][0] < '0' || words[1][0] > '9') return false;
  read->valid.is_some = true;
  read->valid.val = strtoul(words[1], &end, 10) * 1000ull;
  return *end == 0;
}

bool exports_switchyard_hooks_resolution_configure(resolver_string_t *document, resolver_string_t *err) {
  policy_t read = {0};
  char *text = strndup((char *)document->ptr, document->len), *rest = text;
  resolver_string_free(document);
  for (size_t number = 1; rest; number++) {
    char *line = strsep(&rest, "\n");
    if (!read_line(&read, line)) {
      char words[96];
      snprintf(words, sizeof words, "line %zu: expected 'table NAME' or 'valid SECONDS'", number);
      resolver_string_dup(err, words);
      free(text);
      return false;
    }
  }
  bool opened = false;
  if (read.name) {
    resolver_string_t name;
    resolver_string_set(&name, read.name);
    opened = switchyard_hooks_tables_open(&name, &read.table, err);
  } else {
    resolver_string_dup(err, "there is no line 'table NAME'");
  }
  free(text);
  read.name = NULL;
  if (opened) policy = read;
  return opened;
}

void exports_switchyard_hooks_resolution_resolve(resolver_string_t *msisdn, resolved_t *ret) {
  memset(ret, 0, sizeof *ret);
  resolver_string_t value;
  if (switchyard_hooks_tables_get(policy.table, msisdn, &value)) {
    const char *text = (const char *)value.ptr, *comma = memchr(text, ',', value.len);
    size_t digits = comma ? (size_t)(comma - text) : value.len;
    ret->answer.tag = EXPORTS_SWITCHYARD_HOOKS_RESOLUTION_ANSWER_FOUND;
    resolver_string_dup_n(&ret->answer.val.found.imsi, text, digits);
    if (comma) {
      ret->answer.val.found.serving.is_some = true;
      resolver_string_dup_n(&ret->answer.val.found.serving.val, comma + 1, value.len - digits - 1);
    }
    ret->answer.val.found.valid = policy.valid;
    resolver_string_free(&value);
  } else {
    ret->answer.tag = EXPORTS_SWITCHYARD_HOOKS_RESOLUTION_ANSWER_UNKNOWN;
    ret->note.is_some = true;
    resolver_string_dup(&ret->note.val, "not in the table");
  }
  resolver_string_free(msisdn);
}

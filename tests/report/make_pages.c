/* SPDX-License-Identifier: Apache-2.0
 * Writes HTML reports of every kind into a folder, for tests/report/browser.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "programs.h"
#include "test_support.h"

static void write_page(const char *folder, const char *name, struct sc_findings *findings)
{
  char *path = sc_asprintf("%s/%s.html", folder, name), *text = render(findings, "html", NULL);
  FILE *file = fopen(path, "w");

  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  free(path);
  free(text);
  sc_findings_free(findings);
}

int main(int argc, char **argv)
{
  char long_name[2000];

  if (argc != 2) {
    fprintf(stderr, "usage: make_pages FOLDER\n");
    return 2;
  }
  memset(long_name, 'w', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = '\0';
  write_page(argv[1], "full", fixture_full());
  write_page(argv[1], "ruler", fixture_ruler());
  write_page(argv[1], "process", fixture_process());
  write_page(argv[1], "program", program_findings(2000, 3, NULL));
  write_page(argv[1], "many-threads", program_findings(200000, 40, NULL));
  write_page(argv[1], "simulated", fixture_simulated());
  write_page(argv[1], "not-verified", fixture_not_verified());
  write_page(argv[1], "hostile", fixture_hostile("</script><script>document.title='owned'</script><img src=x onerror=x>"));
  write_page(argv[1], "long-names", fixture_hostile(long_name));
  write_page(argv[1], "minimal", fixture_minimal());
  return 0;
}

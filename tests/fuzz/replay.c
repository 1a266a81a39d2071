/* SPDX-License-Identifier: Apache-2.0
 * Runs a fuzz target over every file of a folder: the corpus as a test, without libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* False if the file cannot be read. */
static int replay(const char *path) {
  struct stat st;
  FILE *file = fopen(path, "rb");
  uint8_t *bytes = NULL;
  int ok = 0;

  if (!file || stat(path, &st) != 0)
    goto cleanup;
  bytes = malloc(st.st_size ? (size_t)st.st_size : 1); /* exactly as large as the input, for the sanitizers */
  if (!bytes || fread(bytes, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
    goto cleanup;
  LLVMFuzzerTestOneInput(bytes, (size_t)st.st_size);
  ok = 1;

cleanup:
  free(bytes);
  if (file)
    fclose(file);
  return ok;
}

int main(int argc, char **argv) {
  struct dirent *entry;
  unsigned files = 0;
  DIR *folder;

  if (argc != 2 || !(folder = opendir(argv[1]))) {
    fprintf(stderr, "usage: replay FOLDER (a corpus)\n");
    return 2;
  }
  while ((entry = readdir(folder))) {
    char path[4096];

    if (entry->d_name[0] == '.')
      continue;
    snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
    if (!replay(path)) {
      fprintf(stderr, "replay: cannot read %s\n", path);
      return 1;
    }
    files++;
  }
  closedir(folder);
  printf("%u inputs replayed\n", files);
  return files ? 0 : 1; /* an empty corpus tests nothing */
}

/* SPDX-License-Identifier: Apache-2.0
 * A program without a loader. */
#include <unistd.h>

#include "shared.h"

int main(void)
{
  struct victim_page *page = victim_page();
  if (!page)
    return 64;
  page->ready++;
  while (!page->stop)
    usleep(1000);
  return 0;
}

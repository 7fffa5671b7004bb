/** Tests that need real RDMA devices; they run in the lab's guest. How to write one: {@code it/lab/README.md}. */
@NullMarked
package org.verbena.it.lab;

import org.jspecify.annotations.NullMarked;

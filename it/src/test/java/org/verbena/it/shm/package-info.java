/** The whole stack through shared memory, on this host. */
package org.verbena.it.shm;

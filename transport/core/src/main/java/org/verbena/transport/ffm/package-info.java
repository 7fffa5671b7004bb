/** Memory straight from the kernel. Internal: not exported. */
package org.verbena.transport.ffm;

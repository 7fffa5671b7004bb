/** System calls for memory, processors and errors. Internal: not exported. */
package org.verbena.transport.ffm;

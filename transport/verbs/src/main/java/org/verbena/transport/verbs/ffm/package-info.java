/** The system calls of the native provider. Internal: not exported. */
package org.verbena.transport.verbs.ffm;

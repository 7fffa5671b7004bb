/** Access rights and kinds of registered memory. */
package org.verbena.verbs.memory;
